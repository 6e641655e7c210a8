#include "session.h"

#include "tools/common/failure.h"

#include <sched.h>

namespace ucxl::perf
{

using tools::check;
using tools::give_up;

namespace
{

// The address of a worker with every transport has a few hundred bytes.
constexpr std::size_t max_address_length = 1 << 16;

} // namespace

void session::open(std::uint64_t features)
{
    _own = ucp_process::create(features);
    _peer.send(oob_kind::address, _own.address());
    const std::vector<std::byte> theirs = _peer.receive(oob_kind::address, max_address_length);
    if (theirs.empty()) {
        give_up("{} sent an empty worker address", _peer.peer_name());
    }
    _endpoint = connect_to(worker(), theirs);
    flush();
    barrier();
}

session::~session()
{
    if (_endpoint == nullptr) {
        return;
    }
    // Only after a failure: the peer may be gone, so do not wait.
    ucp_request_param_t param{};
    param.op_attr_mask             = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags                    = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(_endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) {
        for (unsigned i = 0; i < idle_limit && ucp_request_check_status(request) == UCS_INPROGRESS; ++i) {
            ucp_worker_progress(worker());
        }
        ucp_request_free(request);
    }
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
    if (UCS_PTR_IS_PTR(request)) {
        ucs_status_t status = UCS_INPROGRESS;
        progress_until([&] { return (status = ucp_request_check_status(request)) != UCS_INPROGRESS; });
        ucp_request_free(request);
        check(status, call);
    } else {
        check(UCS_PTR_STATUS(request), call);
    }
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
