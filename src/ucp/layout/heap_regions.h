// The memory of libucx_layout_heap, if that library is preloaded, as regions: windows over it are direct.
//
// Example: share_heap(); // before a window is made or bound
#pragma once

#include "ucs/window/region.h"

#include <cstdint>

namespace ucxl
{

// Makes regions of what the heap has grown by since the last call; one call of a function if there is nothing. Memory
// that cannot be one is left out, as plain memory is. Takes a lock only if there is something new. Throws
// std::bad_alloc.
void share_heap();
// The region of the heap that has all of these bytes, or null. Throws std::bad_alloc.
region_ptr region_of_heap(const void* start, std::uint64_t length);

} // namespace ucxl
