// The transport `lay_shm`: puts, gets and atomics on windows of other processes of the host. It works directly in their
// memory, which we allocated and which is mapped here. The target need not do anything; if it makes progress meanwhile,
// it moves a part of a long operation (shared_pass.h).
//
// Its component and memory domain are separate from `layout`. `layout` tells UCP which addresses are windows and has no
// remote keys. lay_shm has remote keys and refuses each key that it cannot serve, so that UCP finds another way for
// that window.
//
// Invariant: every operation is complete when it returns. A process does not reach itself; otherwise UCP would use this
// transport between its own windows and host memory.
#pragma once

#include "abi/component.h"

namespace ucxl
{

extern abi::component lay_shm_component;
extern abi::transport lay_shm_tl;

// Memory of type RDMA that a program allocates is shared memory, unless others offer memory of that type. One function,
// which throws nothing.
void leave_rdma_memory_to(bool (*others_offer_it)());

} // namespace ucxl
