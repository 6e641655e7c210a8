// The content hash of a layout: of its nest and bounds, the same in every process and every release of this wire version.
#pragma once

#include "layout.h"

namespace ucxl
{

std::uint64_t hash_content(const layout& of);

} // namespace ucxl
