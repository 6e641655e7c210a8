// The endpoint of lay_copy: what the operations do.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// Fills in the operations on endpoints.
void lay_copy_ep_ops(uct_iface_ops_t& ops);

} // namespace ucxl
