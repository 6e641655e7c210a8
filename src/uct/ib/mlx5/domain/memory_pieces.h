// Which memory a window needs registered: one range for each source, or, where the blocks of a source lie far apart,
// a range for each group of blocks that lie together. Memory between them may not exist.
//
// Example:
//     const auto pieces = whole_sources(layout, bases);
//     region->prepare(pieces.shape, {{pieces.ranges[0].start, lkey of that range}, ...});
#pragma once

#include "base_memory.h"
#include "ucs/layout/layout.h"

#include <span>
#include <vector>

namespace ucxl::mlx5
{

struct memory_pieces {
    layout_ptr shape; // the same bytes in the same order; source i lies in ranges[i]
    // The bases of the sources: source i of `shape` begins at origins[i].
    std::vector<std::uintptr_t> origins;
    std::vector<memory_range> ranges; // empty for a source without bytes
};

// One range for each source.
memory_pieces whole_sources(const layout_ptr& layout, std::span<std::byte* const> bases);

// Groups of blocks. Errors: exceeds_limit (too many groups or blocks), no_memory.
result<memory_pieces> groups_of_blocks(const layout& layout, std::span<std::byte* const> bases);

// Whether a source reaches over so much memory that it does not describe that it should be registered in groups.
bool is_scattered(const layout& layout);

} // namespace ucxl::mlx5
