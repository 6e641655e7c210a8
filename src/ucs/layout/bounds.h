// Where the bytes of every source lie: the true bounds of a finished nest.
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

// Of all sources that have bytes, ascending. Fails when a byte is further than max_offset from its base address, or
// when nodes that use many sources are shared so often that the answer would take more than max_span_steps.
result<std::vector<source_span>> true_bounds(const layout& of);

} // namespace ucxl
