// UCP of this process: its context, its worker, and an endpoint to itself for memory that its CPU cannot touch.
//
// Invariant: operations on the endpoint to itself end without the help of any peer.
//
//     ucp_process own = ucp_process::create(base_features | atomic_features);
//     own.finish(ucp_put_nbx(own.loopback(), ...), "ucp_put_nbx");
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <ucp/api/ucp.h>
#include <utility>
#include <vector>

namespace ucxl::perf
{

struct context_deleter {
    void operator()(ucp_context* context) const { ucp_cleanup(context); }
};
struct worker_deleter {
    void operator()(ucp_worker* worker) const { ucp_worker_destroy(worker); }
};
struct rkey_deleter {
    void operator()(ucp_rkey* rkey) const { ucp_rkey_destroy(rkey); }
};
using context_handle = std::unique_ptr<ucp_context, context_deleter>;
using worker_handle  = std::unique_ptr<ucp_worker, worker_deleter>;
using rkey_handle    = std::unique_ptr<ucp_rkey, rkey_deleter>;

inline constexpr std::uint64_t base_features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA;
// Not always on, because UCP may choose other lanes for endpoints with atomic operations.
inline constexpr std::uint64_t atomic_features = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;

class ucp_process
{
public:
    static ucp_process create(std::uint64_t features);

    ucp_process() = default;
    ucp_process(ucp_process&& other) noexcept
        : _context(std::move(other._context)), _worker(std::move(other._worker)),
          _loopback(std::exchange(other._loopback, nullptr))
    {
    }
    ucp_process& operator=(ucp_process&& other) noexcept
    {
        std::swap(_context, other._context);
        std::swap(_worker, other._worker);
        std::swap(_loopback, other._loopback);
        return *this;
    }
    ~ucp_process() { close_loopback(); }

    ucp_context_h context() const { return _context.get(); }
    ucp_worker_h worker() const { return _worker.get(); }
    // The endpoint to this process; the first call makes it.
    ucp_ep_h loopback();
    // Ends an operation that no peer takes part in: throws on an error status, waits for a request and frees it.
    void finish(ucs_status_ptr_t request, const char* call) const;

    std::vector<std::byte> address() const;

private:
    void close_loopback();

    context_handle _context;
    worker_handle _worker;
    ucp_ep_h _loopback = nullptr;
};

// The endpoint to the worker with this address.
ucp_ep_h connect_to(ucp_worker_h worker, std::span<const std::byte> address);

std::vector<std::byte> pack_key(ucp_context_h context, ucp_mem_h memh);
rkey_handle unpack_key(ucp_ep_h endpoint, std::span<const std::byte> packed);

} // namespace ucxl::perf
