// The oracle of address translation: the memory of a range of a key, byte by byte, from the raw entries, by walking all
// of them each time. Slow, recursive, and close to the manual.
#pragma once

#include <cstdint>
#include <vector>

#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{

struct byte_place {
    softhca::space space;
    client_id client;
    std::uint64_t address;

    bool operator==(const byte_place&) const = default;
};

// A byte of the key without memory: the device keeps it where no other key reaches.
inline constexpr byte_place without_memory{space::engine, 0, 0};

// Whether that byte of the piece is at the place.
bool is_at(const arena& memory, const byte_place& place, const piece& found, std::uint64_t offset);

struct reference_result {
    std::vector<byte_place> bytes; // up to the fault
    access_fault fault = access_fault::none;
};

reference_result reference_walk(arena& memory, const key_user& user, std::uint32_t key, std::uint64_t address,
                                std::uint64_t length, right needed);

} // namespace ucxl::softhca::test
