// Room for the 16-byte translation entries of indirect keys, in the arena's one table: runs by powers of two.
//
// Which runs are taken follows from the live keys' entries_first and entries_room alone, so the pool can be rebuilt at
// any time when no run is held that no live key names. Call under the lock.
//
//     record.entries_first = allocate_translations(memory, count);     0: there is no room
//     record.entries_room  = count;
#pragma once

#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

// The first entry of a run of `count` zero entries, or 0 when there is no room or `count` is 0. The run has to be
// named by a live key, or released, before the next call.
std::uint32_t allocate_translations(arena& memory, std::uint32_t count);

// `count` as it was allocated; nothing happens when it is 0.
void release_translations(arena& memory, std::uint32_t first, std::uint32_t count);

// After a process died in the middle of a change: free is what no live key has.
void rebuild_translation_pool(arena& memory);

} // namespace ucxl::softhca
