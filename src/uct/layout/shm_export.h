// Remote keys of lay_shm for memory of this process.
//
// The record of a key is written when the first key of a window is packed, and erased with the window, so that a key
// that outlives its window is refused by who unpacks it. Any thread.
#pragma once

#include "shm_key.h"

namespace ucxl
{

// Of the window that holds the address. A key of memory that cannot be mapped (the application's own, or nothing at
// all) says so; so does one for which there is no memory, which is logged as debug. Throws std::bad_alloc.
shm_key export_window(const void* address);

// What packs into a remote key that every peer refuses.
shm_key unmappable_key();

} // namespace ucxl
