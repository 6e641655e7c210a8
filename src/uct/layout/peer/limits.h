// Limits for the memory of peers that a process keeps mapped: UCX_LAY_SHM_*, in UCX's configuration system. (The prices
// of the transport lay_shm have the same prefix; its interface reads them.)
#pragma once

#include <cstddef>

namespace ucxl
{

struct lay_shm_limit_options {
    unsigned idle_windows;  // UCX_LAY_SHM_IDLE_WINDOWS: windows kept without a key
    std::size_t idle_bytes; // UCX_LAY_SHM_IDLE_SIZE: bytes of their memory, and of what is kept to work in it
    std::size_t map_bytes;  // UCX_LAY_SHM_MAP_LIMIT: bytes of all mapped memory of peers
    unsigned map_regions;   // UCX_LAY_SHM_MAP_REGIONS: how many pieces that memory may be
    unsigned maps_unsealed; // UCX_LAY_SHM_MAP_UNSEALED: whether files that may lose pages are mapped
    std::size_t min_shared; // UCX_LAY_SHM_SHARE_MIN: bytes of the shortest operation that the owner may share
};

// Reads the environment once. Where a value is wrong, the defaults apply and one error is logged.
const lay_shm_limit_options& lay_shm_limits();

// Adds the table to UCX's list of tables, once.
void register_lay_shm_config();

} // namespace ucxl
