#include "random_keys.h"

#include <algorithm>

#include "softhca/core/keys/translation_list.h"

namespace ucxl::softhca::test
{

random_keys::random_keys(arena& memory, client_id client, std::span<const std::byte> buffer, choice choose)
    : _memory(memory), _client(client), _buffer(buffer), _choose(std::move(choose)), _make(memory)
{
}

void random_keys::make(unsigned count)
{
    _keys.push_back(_make.direct(_client, _buffer));
    for (unsigned i = 1; i < count; i++) {
        _keys.push_back(make_one());
        if (one_in(12)) {
            spoil(_keys.back());
        }
        if (one_in(3)) {
            // Another start address, sometimes such that the key touches the end of the address space.
            mkey_record& key = _make.record(_keys.back());
            key.start_addr   = one_in(4) ? 0 - key.len : one_in(8) ? 0 - key.len / 2 : _choose(1ULL << 40);
        }
    }
}

std::uint32_t random_keys::make_one()
{
    switch (_choose(9)) {
    case 0: {
        const std::size_t offset = _choose(_buffer.size());
        return _make.direct(_client, _buffer.subspan(offset, _choose(_buffer.size() - offset) + 1));
    }
    case 1:
        return _make.memic(_choose(memic_bytes), _choose(300) + 1);
    case 2:
    case 3:
    case 4:
        return make_list();
    case 5:
        return make_blocks();
    case 6:
        return make_repeat_block();
    case 7:
        return _make.empty(prm::mkey_access_mode::klm, 12);
    default:
        return make_alias();
    }
}

random_keys::target random_keys::pick()
{
    // Mostly one of the latest keys, which are the deepest.
    const std::size_t newest = std::min<std::size_t>(_keys.size(), 8);
    const std::uint32_t key  = one_in(3) ? _keys[_choose(_keys.size())] : _keys[_keys.size() - 1 - _choose(newest)];
    const mkey_record* seen  = &_make.record(key);
    if (seen->backing == mkey_backing::alias) {
        seen = &_memory.mkeys.records[seen->target_mkey];
    }
    if (one_in(40)) {
        return {key, seen->start_addr + _choose(1000), _choose(1000)};
    }
    const std::uint64_t offset = _choose(seen->len + 1);
    return {key, seen->start_addr + offset, seen->len - offset};
}

std::uint32_t random_keys::make_list()
{
    std::vector<translation_entry> entries(_choose(12) + 1);
    for (translation_entry& entry : entries) {
        const target at = pick();
        entry =
            klm(static_cast<std::uint32_t>(_choose(std::min<std::uint64_t>(at.length, 60) + 1)), at.key, at.address);
    }
    return _make.list(entries);
}

std::uint32_t random_keys::make_blocks()
{
    const auto log_size = static_cast<std::uint8_t>(_choose(6));
    std::vector<translation_entry> entries(_choose(8) + 1);
    for (translation_entry& entry : entries) {
        target at = pick();
        for (unsigned tries = 0; at.length >> log_size == 0 && tries < 4; tries++) {
            at = pick();
        }
        entry = ksm(at.key, at.address);
    }
    return _make.blocks(log_size, entries);
}

std::uint32_t random_keys::make_repeat_block()
{
    const auto count          = static_cast<std::uint16_t>(_choose(4) + 1);
    const std::uint32_t turns = static_cast<std::uint32_t>(_choose(6)) + 1;
    std::uint32_t turn_bytes  = 0;
    std::vector<translation_entry> entries(count + 1U);
    for (unsigned i = 1; i <= count; i++) {
        const target at          = pick();
        const std::uint64_t room = std::min<std::uint64_t>(at.length / turns, 500);
        const auto stride        = static_cast<std::uint16_t>(_choose(room + 1));
        const auto bytes         = static_cast<std::uint16_t>(_choose(std::min<std::uint64_t>(room, 30) + 1));
        entries[i]               = repeat_entry(stride, bytes, at.key, at.address);
        turn_bytes += bytes;
    }
    entries[0] = repeat_header(turn_bytes + (one_in(20) ? 1 : 0), turns + (one_in(20) ? 1 : 0),
                               static_cast<std::uint16_t>(count + (one_in(20) ? 1 : 0)));
    return _make.list(entries);
}

// Most aliases are in a function of their own; those in the same function can be used by lists.
std::uint32_t random_keys::make_alias()
{
    const function_id function = one_in(4) ? 1 : _make.function;
    return _make.alias(_keys[_choose(_keys.size())], function, _make.pd);
}

void random_keys::spoil(std::uint32_t key)
{
    mkey_record& record = _make.record(key);
    if (record.backing == mkey_backing::alias && one_in(2)) {
        record.access_key[1] ^= 1; // otherwise too few aliases do not open their key
        return;
    }
    const std::uint64_t kind = _choose(9);
    if (record.backing == mkey_backing::process && (kind == 5 || kind == 6)) {
        return; // a longer key of a process would show memory that is not the buffer
    }
    switch (kind) {
    case 0:
        record.free = true;
        break;
    case 1:
        record.pd++;
        break;
    case 2:
        record.qpn = _make.user().qpn + static_cast<std::uint32_t>(_choose(2));
        break;
    case 3:
        record.local_read = record.remote_write = false;
        break;
    case 4:
        record.local_write = record.remote_read = false;
        break;
    case 5:
        record.len += _choose(100);
        break;
    case 6:
        record.length64 = true;
        break;
    case 7:
        record.access_key[1] ^= 1;
        break;
    default:
        _make.destroy(key);
    }
}

} // namespace ucxl::softhca::test
