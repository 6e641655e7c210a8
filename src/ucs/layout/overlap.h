// Does a layout describe a byte twice?
#pragma once

#include "layout.h"

namespace ucxl
{

// Exact or `maybe`; cost bounded by max_overlap_steps.
overlap find_overlap(const layout& of);

} // namespace ucxl
