// Remote keys of lay_shm and lay_cma for windows of this process.
//
// The record of a key is written when the first key of a window is packed, and erased with the window, so that a key
// that outlives its window is refused by who unpacks it. Any thread.
#pragma once

#include "key.h"

namespace ucxl
{

// Of the window that holds the address, if it has memory of its own, which peers can map. Any other key says that there
// is no access; so does one for which there is no memory, which is logged as debug. Throws std::bad_alloc.
shm_key export_window(const void* address);
// Of the window that holds the address, if it shows memory of the application in blocks of at least min_block bytes on
// average. Otherwise as export_window().
shm_key export_process_window(const void* address, std::size_t min_block);

// What packs into a remote key that every peer refuses.
shm_key no_access_key();

// After the window at this address was bound to other bases: its keys lead there from now on.
void update_exported_window(const void* address) noexcept;
// Ends the keys of the window at this address, which itself goes on. The next one gets a record of its own.
void withdraw_exported_window(const void* address) noexcept;

} // namespace ucxl
