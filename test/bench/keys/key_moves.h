// The transfer really made, by one method and process each, and what the software device counted for it.
#pragma once

#include <string>

#include "key_costs.h"

namespace ucxl::bench
{

// This program again for each method, under softhca-run --stats; without what setting up alone costs.
table counted_moves(const char* program);

// One of them, in the process that is counted. False: no such method.
bool move_by(const std::string& method);

} // namespace ucxl::bench
