#include "reference_walk.h"

#include "prm/umr.h"

namespace ucxl::softhca::test
{

namespace
{

using wide = unsigned __int128;

constexpr wide address_space = wide{1} << 64;

class walker
{
public:
    walker(arena& memory, reference_result& result) : _memory(memory), _result(result) {}

    // False after a fault.
    bool use(const key_user& user, std::uint32_t number, std::uint64_t address, std::uint64_t length, right needed,
             unsigned indirect_above);

private:
    bool fail(access_fault why)
    {
        _result.fault = why;
        return false;
    }

    bool check_state(const key_user& user, const mkey_record& key);
    bool use_entries(const key_user& user, const mkey_record& key, wide offset, wide length, right needed,
                     unsigned indirect_above);
    bool use_repeat_block(const key_user& user, const mkey_record& key, wide offset, wide length, right needed,
                          unsigned indirect_above);
    bool use_overlap(const key_user& user, std::uint32_t key, wide place, wide begin, wide end, wide offset,
                     wide length, right needed, unsigned indirect_above);
    const translation_entry& entry(const mkey_record& key, std::uint32_t index)
    {
        return _memory.translations.entries[key.entries_first + index];
    }

    arena& _memory;
    reference_result& _result;
};

bool has_right(const mkey_record& key, right needed)
{
    return (needed == right::local_read && key.local_read) || (needed == right::local_write && key.local_write) ||
           (needed == right::remote_read && key.remote_read) || (needed == right::remote_write && key.remote_write) ||
           (needed == right::remote_atomic && key.remote_atomic);
}

bool walker::check_state(const key_user& user, const mkey_record& key)
{
    if (key.free || key.backing == mkey_backing::none) {
        return fail(access_fault::not_bound);
    }
    if (key.pd != user.pd) {
        return fail(access_fault::wrong_pd);
    }
    if (key.qpn != 0xffffff && key.qpn != user.qpn) {
        return fail(access_fault::wrong_qp);
    }
    return true;
}

bool walker::use(const key_user& given_user, std::uint32_t number, std::uint64_t address, std::uint64_t length,
                 right needed, unsigned indirect_above)
{
    if (number == key_without_memory) {
        if (needed != right::local_read && needed != right::local_write) {
            return fail(access_fault::no_such_key);
        }
        _result.bytes.insert(_result.bytes.end(), length, without_memory);
        return true;
    }
    key_user user          = given_user;
    const mkey_record* key = number >> 8 < max_mkeys ? &_memory.mkeys.records[number >> 8] : nullptr;
    if (key == nullptr || number >> 8 == 0 || key->owner.life != life::live || key->variant != (number & 0xff) ||
        key->owner.function != user.function) {
        return fail(access_fault::no_such_key);
    }
    if (!check_state(user, *key)) {
        return false;
    }
    if (key->backing == mkey_backing::alias) {
        const mkey_record& target = _memory.mkeys.records[key->target_mkey];
        if (target.owner.life != life::live) {
            return fail(access_fault::no_such_key);
        }
        if (_memory.function_table[target.owner.function].vhca_id != key->target_vhca || !target.shared_with_vhca ||
            target.access_key != key->access_key) {
            return fail(access_fault::wrong_vhca);
        }
        if (target.backing == mkey_backing::alias) {
            return fail(access_fault::broken_entry);
        }
        user = {target.owner.function, target.pd, user.qpn};
        key  = &target;
        if (!check_state(user, *key)) {
            return false;
        }
    }
    if (!has_right(*key, needed)) {
        return fail(access_fault::forbidden);
    }
    const wide key_end = key->length64 ? address_space : wide{key->start_addr} + key->len;
    if (address < key->start_addr || wide{address} + length > key_end || wide{address} + length > address_space) {
        return fail(access_fault::outside);
    }
    const std::uint64_t offset = address - key->start_addr;
    if (key->backing == mkey_backing::klm || key->backing == mkey_backing::ksm ||
        key->backing == mkey_backing::repeat) {
        if (indirect_above == max_indirection) {
            return fail(access_fault::too_deep);
        }
        const bool reads  = needed == right::local_read || needed == right::remote_read;
        const right below = reads ? right::local_read : right::local_write;
        return key->backing == mkey_backing::repeat
                   ? use_repeat_block(user, *key, offset, length, below, indirect_above + 1)
                   : use_entries(user, *key, offset, length, below, indirect_above + 1);
    }
    const wide place = wide{key->host_address} + offset;
    if (place + length > address_space) {
        return fail(access_fault::outside);
    }
    if (key->backing != mkey_backing::memic) {
        for (std::uint64_t i = 0; i < length; i++) {
            _result.bytes.push_back({space::process, key->direct_client, static_cast<std::uint64_t>(place + i)});
        }
        return true;
    }
    if (place / memic_bytes != (place + length - 1) / memic_bytes || place / memic_bytes >= max_devices) {
        return fail(access_fault::outside);
    }
    for (std::uint64_t i = 0; i < length; i++) {
        const auto at         = static_cast<std::uint64_t>(place + i);
        const std::byte& byte = _memory.memic[at / memic_bytes].bytes[at % memic_bytes];
        _result.bytes.push_back({space::engine, 0, reinterpret_cast<std::uintptr_t>(&byte)});
    }
    return true;
}

// The part of [offset, offset + length) in the piece [begin, end), whose first byte is at `place`.
bool walker::use_overlap(const key_user& user, std::uint32_t key, wide place, wide begin, wide end, wide offset,
                         wide length, right needed, unsigned indirect_above)
{
    const wide first = offset > begin ? offset : begin;
    const wide last  = offset + length < end ? offset + length : end;
    if (first >= last) {
        return true;
    }
    const wide address = place + (first - begin);
    if (address >= address_space) {
        return fail(access_fault::broken_entry);
    }
    return use(user, key, static_cast<std::uint64_t>(address), static_cast<std::uint64_t>(last - first), needed,
               indirect_above);
}

bool walker::use_entries(const key_user& user, const mkey_record& key, wide offset, wide length, right needed,
                         unsigned indirect_above)
{
    wide begin = 0;
    for (std::uint32_t i = 0; i < key.entries_used; i++) {
        const prm::const_view<prm::klm> one(entry(key, i));
        const wide size =
            key.backing == mkey_backing::ksm ? wide{1} << key.log_entity_size : wide{one.get(prm::klm::byte_count)};
        if (!use_overlap(user, one.get(prm::klm::mkey), one.get(prm::klm::address), begin, begin + size, offset, length,
                         needed, indirect_above)) {
            return false;
        }
        begin += size;
    }
    return begin >= offset + length || fail(access_fault::broken_entry);
}

bool walker::use_repeat_block(const key_user& user, const mkey_record& key, wide offset, wide length, right needed,
                              unsigned indirect_above)
{
    using block_entry = prm::repeat_block_entry;
    const prm::const_view<prm::repeat_block_header> header(entry(key, 0));
    const std::uint32_t entries = header.get(prm::repeat_block_header::num_ent);
    const std::uint32_t turns   = header.get(prm::repeat_block_header::repeat_count);
    if (entries + 1 > key.entries_used) {
        return fail(access_fault::broken_entry);
    }
    wide turn_bytes = 0;
    for (std::uint32_t i = 1; i <= entries; i++) {
        turn_bytes += prm::const_view<block_entry>(entry(key, i)).get(block_entry::byte_count);
    }
    if (turn_bytes == 0 || turn_bytes != header.get(prm::repeat_block_header::byte_count)) {
        return fail(access_fault::broken_entry);
    }
    wide begin = offset / turn_bytes * turn_bytes;
    for (wide turn = offset / turn_bytes; turn < turns && begin < offset + length; turn++) {
        for (std::uint32_t i = 1; i <= entries; i++) {
            const prm::const_view<block_entry> one(entry(key, i));
            const wide place = wide{one.get(block_entry::va)} + turn * one.get(block_entry::stride);
            const wide size  = one.get(block_entry::byte_count);
            if (!use_overlap(user, one.get(block_entry::mkey), place, begin, begin + size, offset, length, needed,
                             indirect_above)) {
                return false;
            }
            begin += size;
        }
    }
    return begin >= offset + length || fail(access_fault::broken_entry);
}

} // namespace

bool is_at(const arena& memory, const byte_place& place, const piece& found, std::uint64_t offset)
{
    const byte_place seen{found.space, found.client, found.address + offset};
    if (place != without_memory) {
        return seen == place;
    }
    const std::uint64_t in_arena = seen.address - reinterpret_cast<std::uintptr_t>(&memory);
    return seen.space == space::engine && seen.client == 0 && in_arena >= sizeof(memory);
}

reference_result reference_walk(arena& memory, const key_user& user, std::uint32_t key, std::uint64_t address,
                                std::uint64_t length, right needed)
{
    reference_result result;
    if (length != 0) {
        walker(memory, result).use(user, key, address, length, needed, 0);
    }
    return result;
}

} // namespace ucxl::softhca::test
