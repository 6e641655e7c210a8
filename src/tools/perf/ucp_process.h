// UCP of this process: its context, its worker, and an endpoint to itself for memory that its CPU cannot touch.
//
// Invariant: operations on the endpoint to itself end without the help of any peer.
//
//     ucp_process own(base_features | atomic_features);
//     own.finish(ucp_put_nbx(own.loopback(), ...), "ucp_put_nbx");
#pragma once

#include "tools/common/ucp.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucxl::perf
{

inline constexpr std::uint64_t base_features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA;
// Not always on, because UCP may choose other lanes for endpoints with atomic operations.
inline constexpr std::uint64_t atomic_features = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;

class ucp_process
{
public:
    explicit ucp_process(std::uint64_t features);
    ~ucp_process();
    ucp_process(const ucp_process&)            = delete;
    ucp_process& operator=(const ucp_process&) = delete;

    ucp_context_h context() const { return _context.get(); }
    ucp_worker_h worker() const { return _worker; }
    // The endpoint to this process; the first call makes it.
    ucp_ep_h loopback();
    // Ends an operation that no peer takes part in: throws on an error status, waits for a request and frees it.
    void finish(ucs_status_ptr_t request, const char* call) const;

    std::vector<std::byte> address() const { return tools::address_of(_worker); }

private:
    tools::context _context;
    ucp_worker_h _worker;
    ucp_ep_h _loopback = nullptr;
};

// Closes an endpoint whose peer may be gone, after so many rounds of progress at the latest.
void close_by_force(ucp_worker_h worker, ucp_ep_h endpoint, unsigned rounds);

} // namespace ucxl::perf
