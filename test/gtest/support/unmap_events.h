// Counts the events by which UCX learns that memory was unmapped. Each of them stays in the queue of every UCP
// context's registration cache until that context registers something.
//
// Example: const unmap_events events(base, length); ... EXPECT_EQ(events.count(), 0u);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucxl::test
{

class unmap_events
{
public:
    // Those that touch the range. Throws std::runtime_error.
    unmap_events(const void* start, std::size_t length);
    ~unmap_events();
    unmap_events(const unmap_events&)            = delete;
    unmap_events& operator=(const unmap_events&) = delete;

    std::size_t count() const { return _count.load(); }

private:
    struct handler;

    std::uintptr_t _start;
    std::uintptr_t _end;
    std::atomic<std::size_t> _count{0};
};

} // namespace ucxl::test
