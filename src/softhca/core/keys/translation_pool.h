// Allocates translation entries of indirect keys from the arena's one table, in runs of powers of two.
//
// The entries_first and entries_room of the live keys alone say which runs are taken, so the pool can be rebuilt
// whenever every allocated run belongs to a live key. Call it under the lock.
//
//     record.entries_first = allocate_translations(memory, count);     0: there is no room
//     record.entries_room  = count;
#pragma once

#include <cstdint>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// Returns the first entry of a run of `count` zero entries, or 0 when there is no room or `count` is 0. Before the next
// call a live key must name the run, or it must be released.
std::uint32_t allocate_translations(arena& memory, std::uint32_t count);

// `count`: as it was allocated. Does nothing when it is 0.
void release_translations(arena& memory, std::uint32_t first, std::uint32_t count);

// Rebuilds the pool after a process died in the middle of a change: what no live key has is free.
void rebuild_translation_pool(arena& memory);

} // namespace ucxl::softhca
