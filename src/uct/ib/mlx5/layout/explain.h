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

// Whether a window gets a key by default. The rule above weighs the two ways to move the same bytes for a user of
// verbs, who packs into memory that is there; a window without a key costs UCP more than packing. Errors: why it should
// be copied.
result<void> prefer_key_for_window(const plan_cost& cost, const layout& layout);

// Several lines of text, for people.
std::string explain(const layout& layout, const device_limits& limits);

} // namespace ucxl::mlx5
