// The memory of libucx_layout_heap, if that library is preloaded, as regions: windows over it are direct.
//
// Example: share_heap(); // before a window is made or bound
#pragma once

namespace ucxl
{

// Makes regions of what the heap has grown by since the last call; one call of a function if there is nothing. Memory
// that cannot be one is left out, as plain memory is. Takes a lock only if there is something new. Throws
// std::bad_alloc.
void share_heap();

} // namespace ucxl
