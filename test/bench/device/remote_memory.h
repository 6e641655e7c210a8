// Memory of the second process as the first one puts into it.
#pragma once

#include "bench/common/ucp_pair.h"

#include <vector>

namespace ucxl::bench
{

struct own_memory {
    void* address;
    ucp_mem_h handle;
};

// Both processes call it. The first one gets what the second one has.
inline remote_memory trade_memory(const ucp_pair& pair, bool is_first, const own_memory& own)
{
    const auto mine                    = is_first ? std::vector<std::byte>(1) // the socket takes no empty messages
                                                  : pair.describe(own.address, own.handle);
    const std::vector<std::byte> other = pair.trade(mine);
    return is_first ? pair.remote(other) : remote_memory{};
}

// Of a put: the flush after it says when it is there.
inline void free_when_done(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    } else {
        test::check_ok(UCS_PTR_STATUS(request), "ucp_put_nbx");
    }
}

inline ucs_status_ptr_t flush(const ucp_pair& pair)
{
    const ucp_request_param_t defaults{};
    return ucp_ep_flush_nbx(pair.peer(), &defaults);
}

} // namespace ucxl::bench
