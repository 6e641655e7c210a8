// UCP between this process and its peer: its worker and an endpoint, beside the out-of-band socket. A wait for UCX
// through a session also detects that the peer has died.
//
// Invariant: the socket outlives the endpoint. The endpoint is closed before the peer destroys its worker (see
// close()).
#pragma once

#include "oob.h"
#include "ucp_process.h"

#include <optional>

namespace ucxl::perf
{

class session
{
public:
    explicit session(oob_socket& peer) : _peer(peer) {}
    ~session();
    session(const session&)            = delete;
    session& operator=(const session&) = delete;

    // Exchanges worker addresses and connects; both sides call it.
    void open(std::uint64_t features);
    // Only UCP of this process: without a worker of the peer and an endpoint to it.
    void open_alone(std::uint64_t features) { _own.emplace(features); }
    // Waits end with an error when this one dies, too. It must outlive them.
    void also_check(oob_socket& other) { _other = &other; }
    // Flushes and closes the endpoint, after a barrier; both sides call it.
    void close();

    oob_socket& peer() { return _peer; }
    ucp_process& own_process() { return *_own; }
    ucp_context_h context() { return _own->context(); }
    ucp_worker_h worker() { return _own->worker(); }
    ucp_ep_h endpoint() { return _endpoint; }

    void progress()
    {
        // With a dead peer, pending operations count as progress for ever, so check the socket in any case.
        if (ucp_worker_progress(worker()) != 0) {
            _idle = 0;
        } else if (++_idle == idle_limit) {
            rest();
        }
        if (++_rounds % rounds_per_check == 0) {
            check_others();
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
    void check_others();

    oob_socket& _peer;
    oob_socket* _other = nullptr;
    std::optional<ucp_process> _own;
    ucp_ep_h _endpoint = nullptr;
    unsigned _idle     = 0;
    unsigned _rounds   = 0;
};

} // namespace ucxl::perf
