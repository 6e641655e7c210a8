// Samples of a benchmark and what is said of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <vector>

namespace ucxl::bench
{

inline std::uint64_t now_ns()
{
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

struct percentiles {
    double p50;
    double p90;
    double p99;
    double p999;
    double worst;
};

// Of at least one sample.
percentiles percentiles_of(std::vector<double> samples);

// Microseconds of each of `count` calls, after a twentieth as many that are not counted.
percentiles latency_of(const std::function<void()>& once, std::size_t count);

// A store to a page that refuses it, a signal handler that steps over it, and back: what the kernel takes for a
// doorbell that traps. Microseconds; 0 where this was not written for the processor. In a process without the device,
// whose handler is in front of others.
double bare_trap_us();

} // namespace ucxl::bench
