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

struct reference_result {
    std::vector<byte_place> bytes; // up to the fault
    access_fault fault = access_fault::none;
};

reference_result reference_walk(arena& memory, const key_user& user, std::uint32_t key, std::uint64_t address,
                                std::uint64_t length, right needed);

} // namespace ucxl::softhca::test
