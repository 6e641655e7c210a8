// The capabilities of the device for memory keys, as limits for lowering.
#pragma once

#include <infiniband/verbs.h>

#include "plan.h"
#include "sys/error.h"
#include "umr_request.h"

namespace ucxl::mlx5
{

struct capabilities {
    device_limits limits;
    // The fence that a UMR needs, so that it does not pass an earlier one (umr_fence).
    prm::wqe_fence umr_fence = prm::wqe_fence::strong_ordering;
    // Peers need remote rights for the first key only; those below it need local ones (imaicl).
    bool nested_by_local_rights = false;
    bool pointer_entries        = true;  // bind requests may point to entries in memory
    bool equal_entries          = false; // keys may be created of entries of one length, KSM (fixed_buffer_size)
    bool umr_sets_atomic_right  = false; // umr_modify_atomic_disabled, inverted
    bool has_atomics            = false; // of some kind
    bool atomics                = false; // on 8 bytes, by queue pairs and by dynamic connections where there are any
    bool atomics_lock_memory    = false; // and not addresses of a key (atomic_rate_pa)
    bool relaxed_only           = false; // all memory lets writes pass writes (mkc_order_write_after_write_ro_only)
    unsigned log_keys           = 0;     // so many keys there may be (log_max_mkey)
    std::uint16_t vhca_id       = 0;     // of this function of the device
};

// Of every key change on that device.
inline request_flags flags_of(const capabilities& caps)
{
    return {.fence = caps.umr_fence, .leaves_atomic_right = !caps.umr_sets_atomic_right};
}

// Asks the device (QUERY_HCA_CAP through DEVX).
result<capabilities> query_capabilities(ibv_context* context);

// Whether the device says that its keys can be opened to other functions of it (HCA_CAP_2).
bool says_it_opens_keys(ibv_context* context);

// Whether the device still answers commands. A device that has failed for good does not; work requests do not show
// this.
bool answers_commands(ibv_context* context);

} // namespace ucxl::mlx5
