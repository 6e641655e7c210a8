// How much of a thread's CPU time is that of the software device, which runs in the thread that posts a work request:
// in the handler of the signal that a store to a doorbell page raises (docs/decisions/0006-doorbells-that-trap.md).
#pragma once

#include <cstdint>

namespace ucxl::bench
{

struct device_time {
    std::uint64_t nanoseconds = 0; // CPU time in the handler
    std::uint64_t doorbells   = 0; // the kernel's share of each comes on top, see trap_ns()

    device_time operator-(const device_time& before) const
    {
        return {nanoseconds - before.nanoseconds, doorbells - before.doorbells};
    }
};

// From now on the handler is watched. The process must have used the device already. Throws std::runtime_error.
void watch_device();

device_time time_in_device();

// CPU time that a trap costs outside the device: the kernel's part, and that of watching it. A card has none of it.
// Measured with stores to a page that nobody may write. To be called after watch_device().
double trap_ns();

// Whether the calling thread is in the handler. In any thread, at any time.
bool is_in_device();

// CPU time of the calling thread.
std::uint64_t cpu_ns();

} // namespace ucxl::bench
