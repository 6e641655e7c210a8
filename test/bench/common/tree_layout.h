// A type tree as a layout.
#pragma once

#include "type_tree.h"

#include "ucs/layout/layout.h"

namespace ucxl::bench
{

// Throws std::runtime_error.
layout_ptr layout_of(const type_tree& type);

} // namespace ucxl::bench
