// Copies between two memories of one plan, from a place to the same place: all blocks lie alike on both sides. So they
// go straight from memory to memory, in whichever order suits the memory, and no packed bytes come about. Bytes that
// are described twice come from the same place twice, so the order of blocks does not matter.
#pragma once

#include "cursor.h"
#include "packed_range.h"

namespace ucxl
{

// Moves at most `length` > 0 bytes from the place of the cursor on, within its leaf, and returns how many it moved: 0
// where packed bytes are the better way. The memories must not overlap.
std::uint64_t copy_alike(const program_cursor& place, base_list to_bases, base_list from_bases, std::uint64_t length,
                         caches policy);

} // namespace ucxl
