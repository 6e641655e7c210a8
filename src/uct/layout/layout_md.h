// The component `layout` and its memory domain: it tells stock UCP that window addresses are memory of type RDMA, and
// takes every registration, because a window needs none to be copied by the CPU.
//
// Invariant: mem_reg accepts whatever the domain advertises (UCP aborts otherwise); what is wrong with an address shows
// when it is used.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

extern uct_component layout_component;

} // namespace ucxl
