// The heap: large blocks of memory in files that processes of this host can map, so that windows over them are direct.
// An arena of jemalloc manages them, whose memory comes from one range of addresses (address_range.h).
//
// Nothing is done before the first large allocation. A function that returns null, or false, has done nothing: the
// caller takes plain memory then. That is so if the limit is reached, if the system gives no file in memory, and in
// calls from within: UCX stands before mmap and madvise, and may allocate there while jemalloc holds its locks.
//
// Example:
//     void* const block = heap::allocate(1 << 20, 16, heap::contents::any);
//     if (heap::holds(block)) heap::release(block);
#pragma once

#include "address_range.h"

#include <atomic>
#include <cstddef>

namespace ucxl::heap
{

enum class contents : bool { any, zero };

// Bytes from which on an allocation belongs here. None does until the library is loaded.
extern constinit std::atomic<std::size_t> min_length;
void start();

inline bool holds(const void* block)
{
    return heap_range.holds(block);
}

// Null for alignments of more than 1 MB, too, which are too few to matter.
void* allocate(std::size_t length, std::size_t alignment, contents filled);
// Null if the block could not be resized; then it is as it was.
void* resize(void* block, std::size_t length);
void release(void* block);
std::size_t usable_length(const void* block);

} // namespace ucxl::heap
