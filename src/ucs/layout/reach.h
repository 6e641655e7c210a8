// Whether a sum of steps can land in a range: the arithmetic of overlap detection.
//
// Example: two nests of strides 24 and 40 bytes touch if 24 i - 40 j can be shorter than a block: range_reached(...).
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

// Whether from + a sum of x_k * step_k can lie in [lo, hi]; lo <= hi. Exact in O(log step) for up to two different
// steps. With more steps it is exact in a few tries if each step is larger than all smaller ones together. Each try
// decrements `budget`; at 0 the answer is unknown. All values are within +-2^62.
reached range_reached(std::int64_t from, std::vector<steps> terms, std::int64_t lo, std::int64_t hi,
                      std::uint64_t& budget);

} // namespace ucxl
