// The operations of lay_shm on the memory of peers.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// Fill in the operations on endpoints.
void lay_shm_ep_ops(uct_iface_ops_t& ops);
void lay_shm_atomic_ops(uct_iface_ops_t& ops);

} // namespace ucxl
