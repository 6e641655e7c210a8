// The oracle of address translation: what memory is behind a range of a key, byte by byte, straight from the raw
// entries, by counting through all of them each time. Slow, recursive, and close to the words of the manual.
#pragma once

#include <cstdint>
#include <vector>

#include "softhca/core/access.h"

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
