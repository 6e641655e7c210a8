// An endpoint without state, for transports whose operations are complete when they return.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// Creating, destroying and flushing of such endpoints, and the queue of operations that had to wait, which is empty.
void base_endpoint_ops(uct_iface_ops_t& ops);

} // namespace ucxl
