// Counts the contiguous blocks of a layout, after joining blocks that follow each other in packed order and touch in
// memory.
//
// Time and memory depend on the size of the nest, not on its counts. Loops whose parts touch in single iterations only
// add a logarithm.
#pragma once

#include "layout.h"

namespace ucxl
{

block_stats count_blocks(const layout& layout);

} // namespace ucxl
