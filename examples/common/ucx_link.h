// Stock UCX between the processes of a team: one context, one worker, an endpoint to every other process.
//
// Windows need no code here: send() and receive() take addresses of windows or of ordinary memory.
#pragma once

#include "team.h"

#include <memory>
#include <ucp/api/ucp.h>
#include <vector>

namespace examples
{

template <auto destroy>
struct ucx_destroy {
    template <typename T>
    void operator()(T* handle) const
    {
        destroy(handle);
    }
};

using owned_context = std::unique_ptr<ucp_context, ucx_destroy<ucp_cleanup>>;
using owned_worker  = std::unique_ptr<ucp_worker, ucx_destroy<ucp_worker_destroy>>;

// Both throw. features: those of ucp_params_t.
owned_context open_context(std::uint64_t features);
owned_worker open_worker(ucp_context_h context);

class ucx_link
{
public:
    // All members of the team call it at the same time.
    static std::unique_ptr<ucx_link> create(team& all);
    ~ucx_link();
    ucx_link(const ucx_link&)            = delete;
    ucx_link& operator=(const ucx_link&) = delete;

    ucp_context_h context() const { return _context.get(); }
    ucp_ep_h endpoint(unsigned rank) const { return _endpoints[rank]; }

    // Each returns a request for wait(), or null if it is already complete.
    ucs_status_ptr_t send(unsigned to, const void* buffer, std::size_t length_bytes, ucp_tag_t tag);
    ucs_status_ptr_t receive(void* buffer, std::size_t length_bytes, ucp_tag_t tag);
    // remote_key: the key of the memory at remote_address in process `to`.
    ucs_status_ptr_t put(unsigned to, const void* buffer, std::size_t length_bytes, std::uint64_t remote_address,
                         ucp_rkey_h remote_key);
    ucs_status_ptr_t flush(unsigned to);

    void wait(ucs_status_ptr_t request);
    // Lets the peers finish their transfers with this process, then closes. The last call of every member, at the same
    // time.
    void close();

private:
    explicit ucx_link(team& all) : _team(all) {}
    void progress();

    team& _team;
    owned_context _context;
    owned_worker _worker;
    std::vector<ucp_ep_h> _endpoints;
    unsigned _idle_rounds = 0;
};

} // namespace examples
