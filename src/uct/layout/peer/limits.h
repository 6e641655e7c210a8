// How much of their peers' memory the processes keep mapped: UCX_LAY_SHM_*, in UCX's own configuration system. (The
// prices of the transport lay_shm have the same prefix and are read with its interface.)
#pragma once

#include <cstddef>

namespace ucxl
{

struct lay_shm_limit_options {
    unsigned idle_windows;  // UCX_LAY_SHM_IDLE_WINDOWS: kept without a key
    std::size_t idle_bytes; // UCX_LAY_SHM_IDLE_SIZE: of their memory
    std::size_t map_bytes;  // UCX_LAY_SHM_MAP_LIMIT: of all memory of peers
};

// Read once. The defaults, and one message, where the environment is wrong.
const lay_shm_limit_options& lay_shm_limits();

// Adds the table to UCX's list of tables, once.
void register_lay_shm_config();

} // namespace ucxl
