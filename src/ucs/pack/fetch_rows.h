// Fetches rows of a table that are moved next into the second-level cache. Hardware cannot know where they are.
//
// Example: fetch_rows<false>(std::span(rows).subspan(16, 8), bases, 0); // to be read
#pragma once

#include "program.h"

#include <algorithm>
#include <span>

namespace ucxl
{

template <bool is_written>
inline void fetch_rows(std::span<const table_row> rows, std::byte* const* bases, std::int64_t offset)
{
    for (const table_row& row : rows) {
        const std::byte* const block = bases[row.source] + (offset + row.offset);
        for (std::uint64_t at = 0; at < std::min<std::uint64_t>(row.length, max_fetched_row); at += cache_line) {
            __builtin_prefetch(block + at, is_written ? 1 : 0, 2);
        }
    }
}

} // namespace ucxl
