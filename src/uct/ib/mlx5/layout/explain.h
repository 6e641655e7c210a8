// A plan in words: what it takes, which other forms were rejected and why, and whether packing is the better choice.
#pragma once

#include <string>

#include "lower.h"

namespace ucxl::mlx5
{

// What a CPU takes to pack the layout once, in ns: an estimate on the same footing as estimated_ns().
double packing_ns(const layout& of);

// Whether the device follows the plan in about the time a CPU packs the layout, so that a key saves work.
bool is_worth_a_key(const plan_cost& cost, const layout& of);

// Lines of text, for people.
std::string explain(const layout& of, const device_limits& limits);

} // namespace ucxl::mlx5
