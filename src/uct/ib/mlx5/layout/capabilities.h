// What the device says about memory keys, as limits for lowering.
#pragma once

#include <infiniband/verbs.h>

#include "failure.h"
#include "plan.h"

namespace ucxl::mlx5
{

struct capabilities {
    device_limits limits;
    bool pointer_entries = false; // bind requests may refer to entries in memory
};

// Asks the device (QUERY_HCA_CAP through DEVX).
outcome<capabilities> query_capabilities(ibv_context* context);

} // namespace ucxl::mlx5
