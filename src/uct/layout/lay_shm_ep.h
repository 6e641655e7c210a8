// The endpoint of lay_shm: what the operations do. All that an operation needs of the target is in its remote key; the
// endpoint itself is nothing but a base endpoint.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// Longest operation that goes through a buffer of UCP's.
inline constexpr std::size_t lay_shm_bcopy_length = 8192;

// Fill in the operations on endpoints.
void lay_shm_ep_ops(uct_iface_ops_t& ops);
void lay_shm_atomic_ops(uct_iface_ops_t& ops);

} // namespace ucxl
