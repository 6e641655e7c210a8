// From how many bytes on memory is written past the caches: a property of the machine, and measured on it.
//
// Writing past the caches saves the read of what is overwritten, but who uses the bytes next finds them in memory. The
// limit is the least power of two from 2 to 16 MB for which both together, copying so many bytes and reading them once,
// are not slower past the caches.
//
// Example: if (of.packed_length() >= min_measured_limit && of.packed_length() >= streaming_limit()) ...
#pragma once

#include <cstdint>
#include <limits>

namespace ucxl
{

inline constexpr std::uint64_t no_streaming       = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t min_measured_limit = std::uint64_t{2} << 20;
inline constexpr std::uint64_t max_measured_limit = std::uint64_t{16} << 20;

// no_streaming: never. The first call of a process measures if nothing was set: some 30 ms, and at most 32 MB of memory
// meanwhile. Any thread; meanwhile others, and all where there is no memory to measure with, are told 8 MB.
std::uint64_t streaming_limit();

// For calls from now on; 0 counts as 1. Any thread.
void set_streaming_limit(std::uint64_t bytes);

// Whether memory of that length is written past the caches. Does not measure for what is too short to matter.
bool is_streamed(std::uint64_t length);

// What streaming_limit() finds if it has to, anew.
std::uint64_t measure_streaming_limit();

} // namespace ucxl
