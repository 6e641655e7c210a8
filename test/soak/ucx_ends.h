// How UCX itself ends a process, mostly because another one was killed (docs/limits.md).
//
// Example: if (num_kills > 0 && was_ended_by_copy(ended.output())) { ... }
#pragma once

#include <string>

namespace ucxl::soak
{

// Who copies by the kernel from or to one that is gone, without error handling.
inline bool was_ended_by_copy(const std::string& output)
{
    return output.contains("No such process") && output.contains("uct_cma_ep_tx");
}

// Who gets answers of a peer whose endpoint failed before.
inline bool was_ended_by_late_completion(const std::string& output)
{
    return output.contains("`(flush_ops_count >= 0)") &&
           (output.contains("ucp_rma_cmpl_handler") || output.contains("ucp_get_rep_handler") ||
            output.contains("ucp_atomic_rep_handler"));
}

// Who has no addresses left for a message that comes before its receive.
inline bool was_ended_without_memory(const std::string& output)
{
    return output.contains("Failed to allocate memory pool (name=ucp_am_bufs)") &&
           output.contains("returned Out of memory");
}

// Who connects over cards with error handling, while UCX does not find one of its endpoints. Nobody was killed.
inline bool may_have_lost_endpoint(const std::string& output)
{
    return output.contains("cannot connect") || output.contains("Assertion `(*ep_p)->worker == worker' failed");
}

} // namespace ucxl::soak
