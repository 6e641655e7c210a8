// Reads a plan in the slow and obvious way, as the oracle of the lowering tests, and checks every limit.
#pragma once

#include <string>
#include <vector>

#include "support/spec.h"
#include "uct/ib/mlx5/layout/plan.h"

namespace ucxl::test
{

// The memory behind the last key, in order; neighbours that touch are joined.
std::vector<segment> segments_of(const mlx5::plan& plan);

// Returns "" or the first thing that a device with these limits would refuse or misread.
std::string broken_rule(const mlx5::plan& plan, const mlx5::device_limits& limits);

// One line per key, for people who read a failed test.
std::string to_string(const mlx5::plan& plan);

} // namespace ucxl::test
