// The limits of a layout. Every builder and the wire form check all of them; tests try both sides of each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucxl::limits
{

// Loops above a block, after normalisation. This limit keeps recursion and seek stacks in fixed arrays.
inline constexpr unsigned max_depth = 16;
// Entries of all loops together. An iov list of 112,000 KV-cache blocks is one loop of 112,000 entries.
inline constexpr std::size_t max_entries = std::size_t{1} << 22;
// Entries of all loops that are built on the way to a layout, also of those that others replace.
inline constexpr std::size_t max_built_entries = 8 * max_entries;
// Base addresses of one layout.
inline constexpr std::uint32_t max_sources = 1u << 16;
// Packed length; also the distance of any byte from its base address, in either direction.
inline constexpr std::uint64_t max_length = std::uint64_t{1} << 46;
inline constexpr std::int64_t max_offset  = std::int64_t{1} << 46;
// Steps to compute the bounds of sources: one for each source of a part, for every use of the part.
inline constexpr std::uint64_t max_span_steps = std::uint64_t{1} << 24;
// Overlap detection answers `maybe` beyond these: strided nests (paths from the root to a block), and tries.
inline constexpr std::uint64_t max_overlap_nests = std::uint64_t{1} << 22;
// Of these nests together, if each had as many as the deepest one.
inline constexpr std::uint64_t max_overlap_strides = std::uint64_t{1} << 24;
inline constexpr std::uint64_t max_overlap_steps   = std::uint64_t{1} << 20;
// Dimensions of one strided or interleaved descriptor.
inline constexpr std::size_t max_dims = max_depth;

} // namespace ucxl::limits
