// What holds for the records of a fabric whenever nobody has the lock, looked at one record after the other.
#pragma once

#include <string>

#include "softhca/core/arena.h"

namespace ucxl::softhca::test
{

// What does not hold, one per line; empty when all does.
std::string broken_invariants(arena& memory);

// Nothing is alive and nothing is counted.
std::string what_is_left(arena& memory);

} // namespace ucxl::softhca::test
