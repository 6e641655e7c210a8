// Short blocks that lie so far from each other that hardware does not fetch them ahead well: of a stride that is a
// multiple of 1 KB few fit the first-level cache, and those of longer strides are in pages of their own. Gathers fetch
// them by software. A copy between two such memories goes through a buffer; loads and stores in turn are slower, most
// likely because a load waits for a store before it whose address ends in the same 12 bits.
//
// Measured on Zen 4, memory in second-level cache to main memory, small and huge pages: gathers take 0.6 to 1.0 of the
// time (8 bytes, 8 KB and a bit apart, in the second-level cache: 1.3), copies 0.5 to 1.1. Scatters gain nothing.
#pragma once

#include "kernels.h"

namespace ucxl
{

inline constexpr std::int64_t far_blocks_ahead = 8;

[[gnu::always_inline]] inline bool are_far_blocks(const block_run& run)
{
    constexpr std::uint64_t max_length = 128, conflict_stride = 1024, min_stride = 2048, min_length = 16;
    const std::uint64_t stride = magnitude(run.stride);
    // The first test is false for most layouts, and gathers ask for each fragment of a message.
    return stride >= conflict_stride && run.length <= max_length && run.count > 4 * far_blocks_ahead &&
           (stride % conflict_stride == 0 || (stride >= min_stride && run.length >= min_length));
}

} // namespace ucxl
