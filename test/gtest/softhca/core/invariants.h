// Checks the invariants of a fabric's records, which hold whenever nobody has the lock, one record after the other.
#pragma once

#include <string>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca::test
{

// The violated invariants, one per line; empty when there are none.
std::string broken_invariants(arena& memory);

// No record is live and nothing is counted.
std::string what_is_left(arena& memory);

} // namespace ucxl::softhca::test
