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

// An interface of lay_copy was opened on the domain.
void note_interface(uct_md_h md);

// Whether the ucp_init that this thread is in leaves lay_copy out (UCX_TLS): it closed the domain again without having
// used it. Nobody can copy windows then, and UCP could create no worker if other domains claimed that memory.
bool is_lay_copy_left_out();

} // namespace ucxl
