// Remote keys of lay_shm and lay_cma for windows of this process.
//
// The record of a key is written when the first key of a window is packed, and erased with the window. A peer that
// unpacks a key after that refuses it. Any thread.
#pragma once

#include "board_file.h"
#include "key.h"

#include <atomic>

namespace ucxl
{

// By export.cc.
inline constinit std::atomic<const board_file*> board_of_process{nullptr};

// Returns the key of the window at the address if its bytes are in regions, which peers can map. Otherwise, or if there
// is no memory for the key (logged as debug), returns a key without access. Throws std::bad_alloc.
shm_key export_window(const void* address);
// Returns the key of the window at the address if it shows other memory in blocks of at least min_block bytes on
// average. Otherwise as export_window().
shm_key export_process_window(const void* address, std::size_t min_block);

// The generation of the key that export_window() returned for the window at the address; 0 if there is none.
std::uint64_t generation_of_exported_window(const void* address) noexcept;
// Where peers post passes for this process to share. Null until it exports a window. Wait-free; UCX asks whenever it
// makes progress.
inline const board_file* own_board() noexcept
{
    return board_of_process.load(std::memory_order_acquire);
}

// Fork takes the lock of exports after those that are held over it from now on.
void hold_exports_over_fork();

// Returns a key that every peer refuses.
shm_key no_access_key();

// Call it after the window at this address was bound to other bases: its keys lead there from now on. If peers reached
// the memory in another way before, its keys end.
void update_exported_window(const void* address) noexcept;
// Ends the keys of the window at this address; the window stays. Its next key gets a new record.
void withdraw_exported_window(const void* address) noexcept;

} // namespace ucxl
