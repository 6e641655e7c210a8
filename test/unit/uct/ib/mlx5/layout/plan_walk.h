// What a plan means, read the slow and obvious way: the oracle of the lowering tests. And whether it keeps every limit.
#pragma once

#include <string>
#include <vector>

#include "support/spec.h"
#include "uct/ib/mlx5/layout/plan.h"

namespace ucxl::test
{

// The memory behind the last key, in order, neighbours that touch joined.
std::vector<segment> segments_of(const mlx5::plan& of);

// "" or the first thing that a device with these limits would refuse or misread.
std::string broken_rule(const mlx5::plan& of, const mlx5::device_limits& limits);

// One line per key, to read in a failing test.
std::string to_string(const mlx5::plan& of);

} // namespace ucxl::test
