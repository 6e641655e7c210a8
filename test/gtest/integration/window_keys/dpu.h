// The other function of the device, in the same process: a context that imports memory and moves bytes to it and from
// it, through an endpoint that leads back to itself. The host is a context on the first function (own_peer.h).
//
// Example:
//     own_peer host; plain_buffer buffer(host.context());
//     dpu_side dpu; imported_memory imported(dpu.context(), exported(buffer.memh()));
//     check_ok(dpu.read(imported, buffer.address(), bytes), "read");
#pragma once

#include "support/exported_memory.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ucxl::test
{

inline constexpr const char* host_device = "mlx5_0:1";
inline constexpr const char* dpu_device  = "mlx5_1:1";

// Options of a context of the DPU. Without a cache of imported memory each import gets to the memory domain.
context_options dpu_context(bool caches_imports = true);

class dpu_side
{
public:
    dpu_side();
    // With a worker of its own in a context of dpu_context().
    explicit dpu_side(ucp_context_h shared);
    ~dpu_side();
    dpu_side(const dpu_side&)            = delete;
    dpu_side& operator=(const dpu_side&) = delete;

    ucp_context_h context() const { return _context; }

    // From now on a request that takes longer than that ends with UCS_ERR_TIMED_OUT. Then nothing else works, not even
    // the destructor.
    void lose_patience_after(std::chrono::milliseconds time) { _patience = time; }

    // Moves bytes of the host to `to`, or `from` to the host. After an error there is another endpoint. Throws
    // std::runtime_error if a request does not end.
    ucs_status_t read(const imported_memory& memory, const void* address, std::span<std::byte> to);
    ucs_status_t write(const imported_memory& memory, void* address, std::span<const std::byte> from);

private:
    ucs_status_t put(const void* from, ucp_mem_h local, std::size_t length, void* to, ucp_mem_h remote);
    ucs_status_t finish(ucs_status_ptr_t request);
    void connect();
    void close();

    std::unique_ptr<test::context> _own;
    ucp_context_h _context;
    std::chrono::milliseconds _patience{0}; // 0: much, and then it is an error of the test
    ucp_worker_h _worker;
    ucp_ep_h _endpoint = nullptr;
    plain_buffer _staging;
};

} // namespace ucxl::test
