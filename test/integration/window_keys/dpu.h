// The other function of the device, in the same process: a context that imports memory and moves bytes to it and from
// it, through an endpoint that leads back to itself. The host is a context on the first function (own_peer.h).
//
// Example:
//     own_peer host; plain_buffer buffer(host.context());
//     dpu_side dpu; imported_memory imported(dpu.context(), exported(buffer.memh()));
//     check_ok(dpu.read(imported, buffer.address(), bytes), "read");
#pragma once

#include "support/ucp.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ucxl::test
{

inline constexpr const char* host_device = "mlx5_0:1";
inline constexpr const char* dpu_device  = "mlx5_1:1";

// The bytes of ucp_memh_pack with UCP_MEMH_PACK_FLAG_EXPORT; empty if it failed.
std::vector<std::byte> exported(ucp_mem_h memh);
// Whether the handle is of this library, not of stock UCX.
bool is_of_the_library(std::span<const std::byte> packed);

// Registered memory of its own pages, which UCX's cache does not know from an earlier life.
class plain_buffer
{
public:
    explicit plain_buffer(ucp_context_h context, std::size_t length = 4096);
    ~plain_buffer();
    plain_buffer(const plain_buffer&)            = delete;
    plain_buffer& operator=(const plain_buffer&) = delete;

    ucp_mem_h memh() const { return _memh; }
    std::byte* address() const { return _bytes.data(); }
    std::span<std::byte> bytes() const { return _bytes; }
    // Its registration ends with UCX's next one, or at once if the cache is off.
    void unmap();

private:
    ucp_context_h _context;
    std::span<std::byte> _bytes;
    ucp_mem_h _memh = nullptr;
};

class imported_memory
{
public:
    imported_memory(ucp_context_h context, std::span<const std::byte> packed);
    ~imported_memory();
    imported_memory(const imported_memory&)            = delete;
    imported_memory& operator=(const imported_memory&) = delete;

    ucs_status_t status() const { return _status; }
    ucp_mem_h get() const { return _memh; }

private:
    ucp_context_h _context;
    ucp_mem_h _memh = nullptr;
    ucs_status_t _status;
};

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
