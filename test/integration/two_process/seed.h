// A sequence of random numbers of its own for every part of a scenario, so that one part drawing more does not change
// the others.
#pragma once

#include "support/random.h"

namespace ucxl::two_process
{

inline std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t part)
{
    return test::random(seed ^ (0x9e3779b97f4a7c15u * (part + 1))).next();
}

} // namespace ucxl::two_process
