// UCP between this process and its peer: context, worker and endpoint, beside the out-of-band socket. A wait for UCX
// through a session also detects that the peer has died.
//
// Invariant: the socket outlives the endpoint. The endpoint is closed before the peer destroys its worker (see
// close()).
#pragma once

#include "oob.h"

#include <memory>
#include <ucp/api/ucp.h>

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

class session
{
public:
    // Exchanges worker addresses and connects; both sides call it.
    explicit session(oob_socket& peer) : _peer(peer) {}
    ~session();
    session(const session&)            = delete;
    session& operator=(const session&) = delete;

    void open();
    // Flushes and closes the endpoint, after a barrier; both sides call it.
    void close();

    oob_socket& peer() { return _peer; }
    ucp_context_h context() { return _context.get(); }
    ucp_worker_h worker() { return _worker.get(); }
    ucp_ep_h endpoint() { return _endpoint; }

    void progress()
    {
        // With a dead peer, pending operations count as progress for ever, so check the socket in any case.
        if (ucp_worker_progress(_worker.get()) != 0) {
            _idle = 0;
        } else if (++_idle == idle_limit) {
            rest();
        }
        if (++_rounds % rounds_per_check == 0) {
            _peer.check_peer();
        }
    }
    template <typename Predicate>
    void progress_until(Predicate&& is_done)
    {
        while (!is_done()) {
            progress();
        }
    }
    // Ends an operation: throws on an error status, waits for a request and frees it.
    void finish(ucs_status_ptr_t request, const char* call);
    void flush();
    // Progresses UCX until the peer has sent a message.
    void wait_for_message();
    // A barrier that progresses UCX, because the peer may still need it.
    void barrier();

private:
    static constexpr unsigned idle_limit       = 4096;
    static constexpr unsigned rounds_per_check = 1 << 16;

    void rest();

    oob_socket& _peer;
    context_handle _context;
    worker_handle _worker;
    ucp_ep_h _endpoint = nullptr;
    unsigned _idle     = 0;
    unsigned _rounds   = 0;
};

} // namespace ucxl::perf
