// Checks whether the 8-byte words of a region are 8-byte words of memory, which atomic operations need.
#pragma once

#include "region.h"

namespace ucxl::mlx5
{

// Whether every word at a multiple of 8 of the region is a word of memory.
bool has_whole_words(const region& region);

// Checks the word at the address; the error says what is wrong with it.
result<void> check_word(const region& region, std::uint64_t address);

} // namespace ucxl::mlx5
