// The cheapest monotonic clock of the processor, for a time stamp per message.
#pragma once

#include <chrono>
#include <cstdint>

namespace ucxl::perf
{

inline std::uint64_t ticks_now()
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured once, over a few milliseconds.
double seconds_per_tick();

} // namespace ucxl::perf
