// The content hash of a layout is the hash of its wire form, so it is equal in every process and in every release with
// this wire version.
//
// The input is read as little-endian words of eight bytes. Zeroes fill the last word, and the number of bytes follows:
//     state = 0x9e3779b97f4a7c15; for each word: state = (state ^ word) * 0x9fb21c651e98df25, state ^= state >> 32
// The hash does not resist an adversary: users compare the layouts as well.
#pragma once

#include "layout.h"

#include <span>

namespace ucxl
{

struct hashed_wire_form {
    std::uint64_t hash;
    std::uint64_t length; // bytes
};

hashed_wire_form hash_content(const layout& layout);
// The same of a wire form that was read.
hashed_wire_form hash_wire_form(std::span<const std::byte> bytes);

} // namespace ucxl
