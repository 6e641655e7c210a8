// Options of the API layer, read once from UCX_LAYOUT_* when first asked for; `ucx_info -cf` lists them.
#pragma once

#include <cstddef>

namespace ucxl
{

// UCX_LAYOUT_MAP_CACHE_SIZE: unused windows kept for being mapped again.
std::size_t map_cache_size();

} // namespace ucxl
