// The length from which on memory is written past the caches: a property of the machine, measured on it once that pays.
//
// Writing past the caches saves the read of the overwritten bytes, but the next reader finds them in memory. The limit
// is the least power of two from 2 to 16 MB at which copying that many bytes and reading them once is not slower past
// the caches.
//
// Example: if (plan.packed_length() >= least_streaming_limit()) { // else it never is
//              note_large_move(length);
//              is_streamed = plan.packed_length() >= streaming_limit(); }
#pragma once

#include <cstdint>
#include <limits>

namespace ucxl
{

inline constexpr std::uint64_t no_streaming       = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t min_measured_limit = std::uint64_t{2} << 20;
inline constexpr std::uint64_t max_measured_limit = std::uint64_t{16} << 20;
// A scatter into memory beyond the limit arrives in fragments of a transport's buffers; shorter calls are not written
// past the caches, because they do not pay for the fence.
inline constexpr std::uint64_t min_streamed_call = 4096;

// Returns the limit in bytes; no_streaming means never. Until one is set or measured, and where there is no memory to
// measure with, it is 8 MB. Any thread.
std::uint64_t streaming_limit();

// The least that streaming_limit() may be from now on, as long as none is set.
std::uint64_t least_streaming_limit();

// Counts bytes that are moved between the caller and memory of at least that length. If no limit was set, the limit is
// measured as soon as 16 GB were moved: about 30 ms, with at most 32 MB of memory. Any thread.
void note_large_move(std::uint64_t length);

// Sets the limit for later calls; 0 counts as 1. Any thread.
void set_streaming_limit(std::uint64_t bytes);

// Measures the limit again.
std::uint64_t measure_streaming_limit();

} // namespace ucxl
