#include "session.h"

#include "tools/common/failure.h"

#include <sched.h>

namespace ucxl::perf
{

using tools::give_up;

namespace
{

// The address of a worker with every transport has a few hundred bytes.
constexpr std::size_t max_address_length = 1 << 16;

} // namespace

void session::open(std::uint64_t features)
{
    _own.emplace(features);
    _peer.send(oob_kind::address, _own->address());
    const std::vector<std::byte> theirs = _peer.receive(oob_kind::address, max_address_length);
    if (theirs.empty()) {
        give_up("{} sent an empty worker address", _peer.peer_name());
    }
    _endpoint = tools::connect(worker(), theirs);
    flush();
    barrier();
}

session::~session()
{
    if (_endpoint == nullptr) {
        return;
    }
    // Only after a failure: the peer may be gone.
    close_by_force(worker(), _endpoint, idle_limit);
}

void session::close()
{
    flush();
    barrier();
    const ucp_request_param_t param{};
    finish(ucp_ep_close_nbx(std::exchange(_endpoint, nullptr), &param), "ucp_ep_close_nbx");
    barrier();
}

void session::finish(ucs_status_ptr_t request, const char* call)
{
    tools::check(tools::finish(request, [this] { progress(); }), call);
}

void session::flush()
{
    const ucp_request_param_t param{};
    finish(ucp_ep_flush_nbx(_endpoint, &param), "ucp_ep_flush_nbx");
}

void session::wait_for_message()
{
    // A system call per round would cost more than the peer's one-sided operations.
    constexpr unsigned rounds_per_look = 64;
    // Not through progress(), because a peer may have finished and closed by now.
    for (unsigned round = 0; round % rounds_per_look != 0 || !_peer.readable(); ++round) {
        if (ucp_worker_progress(worker()) == 0 && ++_idle >= idle_limit) {
            _idle = 0;
            sched_yield();
        }
    }
}

void session::barrier()
{
    _peer.send(oob_kind::done, {});
    wait_for_message();
    _peer.receive(oob_kind::done, 0);
}

void session::check_others()
{
    _peer.check_peer();
    if (_other != nullptr) {
        _other->check_peer();
    }
}

void session::rest()
{
    _idle = 0;
    check_others();
    // The peer may be waiting for this processor.
    sched_yield();
}

} // namespace ucxl::perf
