// The transport `lay_copy`: puts and gets between windows and host memory of one worker. The CPU copies inside the
// call.
//
// It is to stock UCP what a GPU copy transport is: the way to move bytes in and out of memory of type RDMA. UCP makes
// one endpoint per worker to itself and stages windows through it over any transport to the peer.
//
// Invariant: every operation is complete when it returns, so there is nothing to progress, flush or wait for.
#pragma once

#include "abi/component.h"

namespace ucxl
{

extern abi::transport lay_copy_tl;

} // namespace ucxl
