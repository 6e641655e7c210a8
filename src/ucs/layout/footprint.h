// How much memory a layout makes a processor load: whole cache lines, however few of their bytes it describes.
//
// Example: touched_length(column of 8-byte numbers, one in each line) == 8 * packed_length()
#pragma once

#include "layout.h"

namespace ucxl
{

// An estimate, in bytes: blocks are taken to begin at lines, and different entries of a loop to share none.
double touched_length(const layout& layout);

} // namespace ucxl
