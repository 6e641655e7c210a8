// The environment of a peer: a context, a worker, an endpoint to the other peer, and a channel beside it.
//
// A peer plays role 0 or role 1. A process that is alone plays both: its endpoint leads back to itself, and its channel
// is a loopback. So the same scenario code serves both cases: `if (session.plays(0)) ...`.
#pragma once

#include "channel.h"
#include "support/ucp.h"

#include <string>

#include <ucp/api/ucp.h>

namespace ucxl::two_process
{

// Arguments that the parent passes on the command line.
struct peer_arguments {
    int role;            // 0, 1, or 2: both
    std::uint64_t seed;  // of the scenario; the same in both peers
    unsigned rounds;     // length of the scenario
    bool wakeup;         // sleep until something happens instead of polling
    unsigned thread = 0; // index of the socket pair

    bool plays(int asked_role) const { return role == asked_role || role == 2; }
};

// Of everything that scenarios use.
class context_handle : public test::context
{
public:
    explicit context_handle(const peer_arguments& arguments, bool many_workers = false);
    // Of these features only.
    explicit context_handle(std::uint64_t features) : test::context({.features = features}) {}
};

struct session_options {
    bool error_handling        = false;   // endpoints with UCP_ERR_HANDLING_MODE_PEER
    ucp_worker_h shared_worker = nullptr; // of several sessions of one process, and not theirs; null: an own one
};

class session
{
public:
    session(const peer_arguments& arguments, const context_handle& context, const session_options& options = {});
    ~session();
    session(const session&)            = delete;
    session& operator=(const session&) = delete;

    bool plays(int role) const { return _arguments.plays(role); }
    const peer_arguments& arguments() const { return _arguments; }
    ucp_context_h context() const { return _context; }
    ucp_worker_h worker() const { return _worker; }
    ucp_ep_h endpoint() const { return _endpoint; }
    // The status that the endpoint's error handler received; UCS_OK before.
    ucs_status_t endpoint_error() const { return _endpoint_error; }

    // Progresses UCP once. If there is nothing to do, it leaves the processor to others or, with wakeup, sleeps until
    // UCP has work.
    void turn();
    // Completes and releases a request, or returns its immediate status.
    ucs_status_t wait(ucs_status_ptr_t request);
    // Afterwards everything started on the endpoint is complete at the target, too.
    void flush();

    // Sends a message beside UCX and waits for the other peer's.
    bytes exchange(std::span<const std::byte> message);
    void barrier() { exchange({}); }
    channel& side_channel() { return _channel; }

    // Closes the endpoint in agreement with the other peer. The worker ends with the session.
    void close();
    // Closes the endpoint when the other peer is gone.
    void abandon();

private:
    bool progress_or_arm();
    void rest();
    void turn_for_channel();
    void connect(const session_options& options);
    void let_the_peer_ask();
    bytes receive();
    void close_endpoint(unsigned flags);

    peer_arguments _arguments;
    channel _channel;
    ucp_context_h _context;
    ucp_worker_h _worker         = nullptr;
    bool _owns_worker            = true;
    ucp_ep_h _endpoint           = nullptr;
    ucs_status_t _endpoint_error = UCS_OK;
    int _event_fd                = -1;
    unsigned _idle_turns         = 0; // one after the other without work
};

} // namespace ucxl::two_process
