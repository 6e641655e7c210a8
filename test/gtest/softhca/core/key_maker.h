// Makes memory keys as records, without commands, for tests of the use of keys.
//
//     key_maker make(machine.memory());
//     const std::uint32_t lines  = make.direct(process.id(), buffer);
//     const std::uint32_t column = make.list({klm(8, lines, address(buffer)), klm(8, lines, address(buffer) + 64)});
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{

inline std::uint64_t address_of(std::span<const std::byte> bytes)
{
    return reinterpret_cast<std::uintptr_t>(bytes.data());
}

translation_entry klm(std::uint32_t byte_count, std::uint32_t key, std::uint64_t address);
translation_entry ksm(std::uint32_t key, std::uint64_t address);
translation_entry repeat_header(std::uint32_t turn_bytes, std::uint32_t turns, std::uint16_t entries);
translation_entry repeat_entry(std::uint16_t stride, std::uint16_t byte_count, std::uint32_t key, std::uint64_t va);

class key_maker
{
public:
    explicit key_maker(arena& memory) : _memory(memory) {}

    // The properties of the keys made next; tests change them in between.
    function_id function = 0;
    std::uint32_t pd     = 7;
    std::uint8_t variant = 0x5a;

    // Who may use the keys.
    key_user user() const { return {function, pd, 0x123}; }

    // With all rights; start_addr is the address.
    std::uint32_t direct(client_id client, std::span<const std::byte> bytes);
    std::uint32_t memic(std::uint64_t offset, std::uint64_t length);

    // Zero-based, with all rights; the entries give the length.
    std::uint32_t list(std::span<const translation_entry> entries);
    std::uint32_t blocks(std::uint8_t log_entity_size, std::span<const translation_entry> entries);
    std::uint32_t list(std::initializer_list<translation_entry> entries)
    {
        return list(std::span(entries.begin(), entries.size()));
    }
    std::uint32_t blocks(std::uint8_t log_entity_size, std::initializer_list<translation_entry> entries)
    {
        return blocks(log_entity_size, std::span(entries.begin(), entries.size()));
    }

    // A free key with room for that many entries, to be bound by a UMR.
    std::uint32_t empty(prm::mkey_access_mode mode, std::uint32_t room);

    // An alias in another function, which gets access to the key.
    std::uint32_t alias(std::uint32_t target, function_id function, std::uint32_t pd);

    mkey_record& record(std::uint32_t key) { return _memory.mkeys.records[key >> 8]; }
    void destroy(std::uint32_t key);

private:
    std::uint32_t publish_key(const mkey_record& made);
    std::uint32_t indirect(mkey_record made, std::span<const translation_entry> entries);
    mkey_record with_all_rights(std::uint64_t start, std::uint64_t length) const;

    arena& _memory;
};

} // namespace ucxl::softhca::test
