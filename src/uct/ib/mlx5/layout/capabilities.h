// The capabilities of the device for memory keys, as limits for lowering.
#pragma once

#include <infiniband/verbs.h>

#include "plan.h"
#include "sys/error.h"

namespace ucxl::mlx5
{

struct capabilities {
    device_limits limits;
    bool pointer_entries  = false; // bind requests may point to entries in memory
    bool atomics          = false; // on 8 bytes, by queue pairs
    std::uint16_t vhca_id = 0;     // of this function of the device
};

// Asks the device (QUERY_HCA_CAP through DEVX).
result<capabilities> query_capabilities(ibv_context* context);

// Whether the device still answers commands. A device that has failed for good does not; work requests do not show
// this.
bool answers_commands(ibv_context* context);

} // namespace ucxl::mlx5
