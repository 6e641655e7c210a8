// The transport `lay_cma`: puts and gets on windows of other processes of the host that show long blocks of the
// application's memory. The kernel copies block by block in one pass (cross memory attach); the target does nothing.
//
// It is for windows what stock UCP's transport cma is for contiguous memory, and like cma its price is a constant, not
// the machine's speed. It has its own component and domain, because UCP would otherwise use the atomics of lay_shm for
// these windows. A window has a key of at most one of the two.
//
// Invariant: every operation is complete when it returns. A process does not reach itself.
#pragma once

#include "abi/component.h"

namespace ucxl
{

extern abi::component lay_cma_component;
extern abi::transport lay_cma_tl;

} // namespace ucxl
