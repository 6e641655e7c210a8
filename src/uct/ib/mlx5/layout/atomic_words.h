// Whether 8-byte words of a region are 8-byte words of memory, so that atomic operations work on them.
#pragma once

#include "region.h"

namespace ucxl::mlx5
{

// Every word at a multiple of 8 of the region.
bool has_whole_words(const region& of);

// The one at that address; an error says what is wrong with it.
result<void> check_word(const region& of, std::uint64_t address);

} // namespace ucxl::mlx5
