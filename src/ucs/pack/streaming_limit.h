// The length from which on memory is written past the caches: a property of the machine, measured on it.
//
// Writing past the caches saves the read of the overwritten bytes, but the next reader finds them in memory. The limit
// is the least power of two from 2 to 16 MB at which copying that many bytes and reading them once is not slower past
// the caches.
//
// Example: if (plan.packed_length() >= min_measured_limit && plan.packed_length() >= streaming_limit()) ...
#pragma once

#include <cstdint>
#include <limits>

namespace ucxl
{

inline constexpr std::uint64_t no_streaming       = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t min_measured_limit = std::uint64_t{2} << 20;
inline constexpr std::uint64_t max_measured_limit = std::uint64_t{16} << 20;

// Returns the limit in bytes; no_streaming means never. If no limit was set, the first call of the process measures it:
// about 30 ms, with at most 32 MB of memory. Until it is known, and where there is no memory to measure with, the limit
// is 8 MB. Any thread.
std::uint64_t streaming_limit();

// Sets the limit for later calls; 0 counts as 1. Any thread.
void set_streaming_limit(std::uint64_t bytes);

// Whether memory of this length is written past the caches. Never measures for lengths that are too short to matter.
bool is_streamed(std::uint64_t length);

// Measures the limit again.
std::uint64_t measure_streaming_limit();

} // namespace ucxl
