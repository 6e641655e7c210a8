// A plan in words: its cost, the rejected forms with reasons, and whether packing is the better choice.
#pragma once

#include <string>

#include "lower.h"

namespace ucxl::mlx5
{

// The time in ns that a CPU needs to pack the layout once: an estimate comparable to estimated_ns().
double packing_ns(const layout& layout);

// Whether the device executes the plan in about the time in which a CPU packs the layout, so that a key saves work.
bool is_worth_a_key(const plan_cost& cost, const layout& layout);

// Several lines of text, for people.
std::string explain(const layout& layout, const device_limits& limits);

} // namespace ucxl::mlx5
