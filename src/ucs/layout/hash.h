// The content hash of a layout: of its wire form, so the same in every process and every release of this wire version.
//
// The bytes are taken eight at a time, little endian, the last word filled up with zeroes and followed by the number of
// bytes:
//     state = 0x9e3779b97f4a7c15; for each word: state = (state ^ word) * 0x9fb21c651e98df25, state ^= state >> 32
// Not meant to resist an adversary: equality is always checked as well.
#pragma once

#include "layout.h"

namespace ucxl
{

std::uint64_t hash_content(const layout& of);

} // namespace ucxl
