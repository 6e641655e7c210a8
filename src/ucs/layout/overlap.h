// Whether a layout describes some byte twice.
#pragma once

#include "layout.h"

namespace ucxl
{

// Exact or `maybe`; the cost is bounded by max_overlap_steps.
overlap find_overlap(const layout& layout);

} // namespace ucxl
