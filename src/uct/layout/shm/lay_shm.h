// The transport `lay_shm`: puts, gets and atomics on windows of other processes of the host, straight in their memory,
// which was allocated by us and is mapped here. The target does nothing.
//
// It has a component and a memory domain of its own beside `layout`: that one tells UCP what windows are and has no
// remote keys; this one has remote keys, and refuses those it cannot serve, each for itself, so that UCP goes another
// way for that window.
//
// Invariant: every operation is complete when it returns. A process does not reach itself: UCP would take the transport
// for its way between windows and host memory.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

extern uct_component lay_shm_component;
extern abi::tl lay_shm_tl;

} // namespace ucxl
