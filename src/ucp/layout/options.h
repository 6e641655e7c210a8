// Options of the API layer. Each is read once from UCX_LAYOUT_*, at its first use; `ucx_info -cf` lists them.
#pragma once

#include "ucs/window/key_options.h"
#include "ucs/window/window_carrier.h"

#include <cstddef>

namespace ucxl
{

// Adds the options to those of the UCX in use, once it is known.
void register_map_options();

// UCX_LAYOUT_MAP_CACHE_SIZE: how many unused windows to keep.
std::size_t map_cache_size();
// UCX_LAYOUT_DIRECT_SHM_MIN for memory of the library, UCX_LAYOUT_DIRECT_CMA_MIN for other memory
std::size_t least_direct_length(bool has_shared_memory);
// UCX_LAYOUT_KEYS_ENABLE
bool are_hardware_keys_enabled();
// UCX_LAYOUT_KEYS_WINDOWS
window_carrier wanted_carrier();

} // namespace ucxl
