// The operations of lay_cma on the memory of peers.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// Fills in the operations on endpoints.
void lay_cma_ep_ops(uct_iface_ops_t& ops);

} // namespace ucxl
