// The part of a plan that one of its keys needs, as a plan with that key last. Attempts that led nowhere leave keys
// behind that nobody refers to.
#pragma once

#include "plan.h"

namespace ucxl::mlx5
{

// Its cost is filled in.
plan reachable_from(const plan& all, std::uint32_t root, const device_limits& limits);

} // namespace ucxl::mlx5
