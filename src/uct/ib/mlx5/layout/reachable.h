// The part of a plan that one of its keys needs, as a plan that ends with this key. Discarded attempts leave
// unreferenced keys behind.
#pragma once

#include "plan.h"

namespace ucxl::mlx5
{

// Fills in the cost of the new plan.
plan reachable_from(const plan& all, std::uint32_t root, const device_limits& limits);

} // namespace ucxl::mlx5
