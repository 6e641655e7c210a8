// What users choose by UCX_LAYOUT_HEAP_*; docs/options.md has the list. Read when the library is loaded, before any
// code of the program runs, so nothing here allocates memory.
#pragma once

#include <cstddef>

namespace ucxl::heap
{

struct settings {
    std::size_t min;     // UCX_LAYOUT_HEAP_MIN: bytes from which on an allocation is put into shared memory
    std::size_t limit;   // UCX_LAYOUT_HEAP_LIMIT: addresses of the heap, in bytes
    bool has_huge_pages; // not UCX_LAYOUT_HUGE_PAGES=n

    // A bad value is told on stderr, and the default is used.
    static settings read();
};

// One line on stderr if UCX_LOG_LEVEL is info or more: why the heap stays out of this process.
void log_stays_out(const char* reason);

// One line on stderr: the child of a fork has no copy of so many bytes.
void log_lost_in_child(std::size_t length);

} // namespace ucxl::heap
