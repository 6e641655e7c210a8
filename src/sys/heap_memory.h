// What libucx_layout_heap tells libucp_layout: which memory of the process it has put into files that peers can map.
// Neither library needs the other one. The heap is preloaded, so it is there first; libucp_layout finds the function by
// its name and asks before it makes a window.
//
// Example: const auto tell = find_heap_memory();
//          for (unsigned piece = 0; tell(piece, &memory) != heap_memory_none; ++piece) { ... }
#pragma once

#include <cstddef>
#include <cstdint>

#include <dlfcn.h>

namespace ucxl
{

// One piece: a shared mapping of a file in memory that cannot become shorter. It stays where it is for ever.
struct heap_memory {
    std::byte* start;
    std::uint64_t length; // bytes, whole pages
    std::uint64_t file_offset;
    int fd; // of the heap
};

enum heap_memory_kind : int {
    heap_memory_none,    // there are not so many pieces yet
    heap_memory_shared,  // `memory` is set
    heap_memory_private, // this process has no file for it: it was copied by fork, or the program closed it
};

// extern "C" int ucx_layout_heap_memory(unsigned piece, heap_memory* memory): a heap_memory_kind. Any thread, no lock.
inline constexpr auto heap_memory_function_name = "ucx_layout_heap_memory";
using heap_memory_function                      = int (*)(unsigned piece, heap_memory* memory);

// Null if the process has no heap of ours.
inline heap_memory_function find_heap_memory()
{
    return reinterpret_cast<heap_memory_function>(dlsym(RTLD_DEFAULT, heap_memory_function_name));
}

} // namespace ucxl
