// The transport `lay_cma`: puts and gets on windows of other processes of the host that show memory of the application
// in long blocks. The kernel copies block by block (cross memory attach), in one pass; the target does nothing.
//
// What stock UCP's transport cma is to contiguous memory, this one is to windows; and like it, it is priced by
// constants and not by what the machine does. A component and domain of its own, because UCP would take the atomics of
// lay_shm for these windows, too; a window has a key of one of the two at most.
//
// Invariant: every operation is complete when it returns. A process does not reach itself.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

extern uct_component lay_cma_component;
extern abi::tl lay_cma_tl;

} // namespace ucxl
