// How many contiguous blocks a layout has, after joining neighbours in packed order that touch in memory.
//
// Takes time and memory in the size of the nest, whatever its counts are (times a logarithm where parts of a loop touch
// in single iterations only).
#pragma once

#include "layout.h"

namespace ucxl
{

block_stats count_blocks(const layout& described);

} // namespace ucxl
