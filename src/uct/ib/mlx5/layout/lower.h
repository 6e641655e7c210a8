// Lowering: layout + device limits -> plan, or the reason why the device cannot do it and packing has to.
//
// A loop over blocks is a repeat block where stride and length fit its 16-bit fields, a list of entries otherwise.
// Dimensions nest by selection: the outer loop is made contiguous first, with chunks as long as the whole inner loop
// (its gaps included), in which the inner loop's blocks then lie at one uniform stride. What repeats or nests badly
// (negative strides, inner loops that reach across outer ones) becomes a list of all blocks. The cheapest plan that
// fits wins.
//
// Never emitted: an entry or turn of length 0, a length, stride or count beyond device_limits, a reference to a key
// that comes later, nesting beyond max_nesting.
#pragma once

#include "plan.h"
#include "sys/error.h"
#include "ucs/layout/layout.h"

namespace ucxl::mlx5
{

// Errors: invalid_param (the layout has no bytes), exceeds_limit (more entries, keys or nesting than the caller or the
// device has room for; the message names the limit).
result<plan> lower(const layout& of, const device_limits& limits);

// The two ways it chooses from, each alone: keys that follow the loops, and the list of all blocks.
result<plan> lower_nested(const layout& of, const device_limits& limits);
result<plan> lower_flat(const layout& of, const device_limits& limits);

// Device and CPU work as one number, in ns: the key binds once, the walk of the translations `transfers` times. An
// estimate for choosing, from published figures; see docs/needs-hardware.md.
double estimated_ns(const plan_cost& cost, double transfers = 1);

} // namespace ucxl::mlx5
