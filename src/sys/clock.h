// Readings of the system's clocks.
//
// Example: const auto begin = nanoseconds_of(CLOCK_MONOTONIC);
#pragma once

#include <cstdint>

#include <time.h>

namespace ucxl
{

inline std::int64_t nanoseconds_of(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

} // namespace ucxl
