// The true bounds of a finished nest: where the bytes of each source lie.
#pragma once

#include "layout.h"
#include "sys/error.h"

#include <vector>

namespace ucxl
{

struct source_span {
    std::uint32_t source;
    std::int64_t lb; // bytes from the base address
    std::int64_t ub;
};

// Moves the span of a root's node to where the root is. Fails if a byte is further than max_offset from its base
// address.
result<source_span> span_of_root(const source_span& node, const layout_entry& root);
// Returns the spans of all sources that have bytes, in ascending order. Fails if a byte is further than max_offset from
// its base address, or if counting shared nodes with many sources would take more than max_span_steps.
result<std::vector<source_span>> true_bounds(const layout& layout);

} // namespace ucxl
