// Can a sum of steps land in a window? The arithmetic core of overlap detection.
//
// Example: two nests of strides 24 and 40 bytes touch if 24 i - 40 j can be smaller than a block: window_reached(...).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ucxl
{

// x * step, 0 <= x <= most; step > 0
struct steps {
    std::int64_t step;
    std::int64_t most;
};

enum class reached { no, yes, unknown };

// Whether some from + sum of x_k * step_k lies in [lo, hi], lo <= hi. Exact in O(log step) for up to two different
// steps and in a few tries for more when each is larger than all smaller ones together; counts its tries down from
// `budget`, and answers unknown when that is used up. All values within +-2^62.
reached window_reached(std::int64_t from, std::vector<steps> terms, std::int64_t lo, std::int64_t hi,
                       std::uint64_t& budget);

} // namespace ucxl
