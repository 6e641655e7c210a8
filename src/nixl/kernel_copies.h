// Memory of processes of this host that is in no file: the kernel copies it from process to process in one pass
// (lay_cma, see process_vm_readv(2)), and its owner does nothing.
//
// lay_cma leaves blocks below 16 KB to messages, because two processes that both work are faster at them. Here the
// other one may wait long for a processor, so lay_cma gets much shorter ones, unless the user has set
// UCX_LAY_CMA_MIN_BLOCK in the environment.
#pragma once

#include "ucx.h"

#include <ucp_layout.hpp>

#include <sys/types.h>

namespace ucxl::nixl
{

// The configuration of a context whose windows lay_cma takes from short blocks on. Null if UCX gives none.
ucp_config_t* config_with_kernel_copies();

// Whether lay_cma takes windows of this layout in such a context, for the length of their blocks.
bool is_for_kernel(const ucx_layout::layout& layout);

// Whether the kernel copies from the process at the other end, and UCX has lay_cma for it.
bool can_kernel_copy(ucp_ep_h endpoint, pid_t process);

} // namespace ucxl::nixl
