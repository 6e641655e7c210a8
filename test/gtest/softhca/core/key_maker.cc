#include "key_maker.h"

#include <stdexcept>

#include "prm/umr.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/keys/translation_list.h"
#include "softhca/core/keys/translation_pool.h"

namespace ucxl::softhca::test
{

translation_entry klm(std::uint32_t byte_count, std::uint32_t key, std::uint64_t address)
{
    prm::storage<prm::klm> entry;
    (*entry).put(prm::klm::byte_count, byte_count);
    (*entry).put(prm::klm::mkey, key);
    (*entry).put(prm::klm::address, address);
    return entry.bytes;
}

translation_entry ksm(std::uint32_t key, std::uint64_t address)
{
    return klm(0, key, address);
}

translation_entry repeat_header(std::uint32_t turn_bytes, std::uint32_t turns, std::uint16_t entries)
{
    prm::storage<prm::repeat_block_header> entry;
    (*entry).put(prm::repeat_block_header::byte_count, turn_bytes);
    (*entry).put(prm::repeat_block_header::op, prm::repeat_block_op);
    (*entry).put(prm::repeat_block_header::repeat_count, turns);
    (*entry).put(prm::repeat_block_header::num_ent, entries);
    return entry.bytes;
}

translation_entry repeat_entry(std::uint16_t stride, std::uint16_t byte_count, std::uint32_t key, std::uint64_t va)
{
    prm::storage<prm::repeat_block_entry> entry;
    (*entry).put(prm::repeat_block_entry::stride, stride);
    (*entry).put(prm::repeat_block_entry::byte_count, byte_count);
    (*entry).put(prm::repeat_block_entry::mkey, key);
    (*entry).put(prm::repeat_block_entry::va, va);
    return entry.bytes;
}

std::uint32_t key_maker::publish_key(const mkey_record& made)
{
    const std::uint32_t index = find_free(_memory.mkeys);
    if (index == 0) {
        throw std::runtime_error("no key is free");
    }
    fresh(_memory.mkeys, index) = made;
    publish(_memory.mkeys, index, {.function = function});
    return index << 8 | made.variant;
}

mkey_record key_maker::with_all_rights(std::uint64_t start, std::uint64_t length) const
{
    mkey_record made;
    made.variant       = variant;
    made.local_read    = true;
    made.local_write   = true;
    made.remote_read   = true;
    made.remote_write  = true;
    made.remote_atomic = true;
    made.pd            = pd;
    made.start_addr    = start;
    made.len           = length;
    return made;
}

std::uint32_t key_maker::direct(client_id client, std::span<const std::byte> bytes)
{
    mkey_record made   = with_all_rights(address_of(bytes), bytes.size());
    made.backing       = mkey_backing::process;
    made.direct_client = client;
    made.host_address  = made.start_addr;
    return publish_key(made);
}

std::uint32_t key_maker::memic(std::uint64_t offset, std::uint64_t length)
{
    mkey_record made  = with_all_rights(0, length);
    made.backing      = mkey_backing::memic;
    made.mode         = prm::mkey_access_mode::memic;
    made.host_address = offset;
    return publish_key(made);
}

std::uint32_t key_maker::indirect(mkey_record made, std::span<const translation_entry> entries)
{
    made.umr_en        = true;
    made.entries_room  = static_cast<std::uint32_t>(entries.size());
    made.entries_first = allocate_translations(_memory, made.entries_room);
    if (made.entries_first == 0 && !entries.empty()) {
        throw std::runtime_error("no room for the entries");
    }
    if (!store_translations(_memory, made, 0, std::as_bytes(entries))) {
        throw std::runtime_error("the entries do not fit");
    }
    return publish_key(made);
}

std::uint32_t key_maker::list(std::span<const translation_entry> entries)
{
    std::uint64_t length = 0;
    const prm::const_view<prm::repeat_block_header> header(entries.front());
    if (header.get(prm::repeat_block_header::op) == prm::repeat_block_op) {
        length = std::uint64_t{header.get(prm::repeat_block_header::byte_count)} *
                 header.get(prm::repeat_block_header::repeat_count);
    } else {
        for (const translation_entry& entry : entries) {
            length += prm::const_view<prm::klm>(entry).get(prm::klm::byte_count);
        }
    }
    mkey_record made = with_all_rights(0, length);
    made.mode        = prm::mkey_access_mode::klm;
    return indirect(made, entries);
}

std::uint32_t key_maker::blocks(std::uint8_t log_entity_size, std::span<const translation_entry> entries)
{
    mkey_record made     = with_all_rights(0, entries.size() << log_entity_size);
    made.mode            = prm::mkey_access_mode::ksm;
    made.log_entity_size = log_entity_size;
    return indirect(made, entries);
}

std::uint32_t key_maker::empty(prm::mkey_access_mode mode, std::uint32_t room)
{
    mkey_record made;
    made.variant       = variant;
    made.mode          = mode;
    made.free          = true;
    made.umr_en        = true;
    made.local_read    = true;
    made.pd            = pd;
    made.entries_first = allocate_translations(_memory, room);
    made.entries_room  = room;
    return publish_key(made);
}

std::uint32_t key_maker::alias(std::uint32_t target, function_id in_function, std::uint32_t in_pd)
{
    mkey_record& shared     = record(target);
    shared.shared_with_vhca = true;
    shared.access_key[0]    = 0x42;
    mkey_record made;
    made.variant            = variant;
    made.backing            = mkey_backing::alias;
    made.pd                 = in_pd;
    made.target_mkey        = target >> 8;
    made.target_vhca        = _memory.function_table[shared.owner.function].vhca_id;
    made.access_key         = shared.access_key;
    const function_id own   = std::exchange(function, in_function);
    const std::uint32_t key = publish_key(made);
    function                = own;
    return key;
}

void key_maker::destroy(std::uint32_t key)
{
    const mkey_record ended = record(key);
    retire(_memory.mkeys, key >> 8);
    release_translations(_memory, ended.entries_first, ended.entries_room);
}

} // namespace ucxl::softhca::test
