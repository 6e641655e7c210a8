// The transport `lay_copy`: puts and gets between windows and host memory of one worker, done by the CPU inside the
// call.
//
// Stock UCP finds in it what a GPU copy transport is to it: the way to get bytes in and out of memory of type RDMA. It
// makes an endpoint to itself per worker and stages windows through it over whatever transport goes to the peer.
//
// Invariant: every operation is complete when it returns, so there is nothing to progress, flush or wait for.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

extern abi::tl lay_copy_tl;

} // namespace ucxl
