// Lowering: turns a layout and the limits of a device into a plan, or into the reason why the layout must be packed.
//
// A loop over blocks becomes a repeat block if stride and length fit its 16-bit fields, and a list of entries
// otherwise. Dimensions nest by selection. First the outer loop is made contiguous, in chunks as long as the whole
// inner loop with its gaps. In this range the blocks of the inner loop lie at one uniform stride. What repeats or nests
// badly (negative strides, inner loops that reach across outer ones) becomes a list of all blocks. The cheapest plan
// that fits wins.
//
// A plan never contains an entry or turn of length 0, a length, stride or count beyond device_limits, a reference to a
// later key, or nesting beyond max_nesting.
#pragma once

#include "plan.h"
#include "sys/error.h"
#include "ucs/layout/layout.h"

namespace ucxl::mlx5
{

// Errors: invalid_param (the layout has no bytes), exceeds_limit (more entries, keys or nesting than the caller or the
// device allows; the message names the limit).
result<plan> lower(const layout& layout, const device_limits& limits);

// The two ways, each alone: keys that follow the loops, and a list of all blocks.
result<plan> lower_nested(const layout& layout, const device_limits& limits);
result<plan> lower_flat(const layout& layout, const device_limits& limits);

// The work of device and CPU as one number, in ns: the key is bound once, the translations are walked `transfers`
// times. An estimate from published figures, for comparisons; see docs/needs-hardware.md.
double estimated_ns(const plan_cost& cost, double transfers = 1);

} // namespace ucxl::mlx5
