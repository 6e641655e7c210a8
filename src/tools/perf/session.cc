#include "session.h"

#include "tools/common/failure.h"

#include <algorithm>

#include <sched.h>

namespace ucxl::perf
{

using tools::check;
using tools::give_up;

namespace
{

// The address of a worker with every transport has a few hundred bytes.
constexpr std::size_t max_address_length = 1 << 16;

context_handle make_context()
{
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params{};
    params.field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
    params.features          = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA;
    params.estimated_num_eps = 1;
    params.name              = "ucx_layout_perftest";
    ucp_context_h context    = nullptr;
    // UCX warns of programs that were compiled with a newer UCX.
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    const ucs_status_t status =
        ucp_init_version(UCP_API_MAJOR, std::min<unsigned>(UCP_API_MINOR, minor), &params, config, &context);
    ucp_config_release(config);
    check(status, "ucp_init");
    return context_handle(context);
}

worker_handle make_worker(ucp_context_h context)
{
    ucp_worker_params_t params{};
    params.field_mask   = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode  = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h worker = nullptr;
    check(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    return worker_handle(worker);
}

void send_own_address(ucp_worker_h worker, oob_socket& peer)
{
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    const auto release = [worker](ucp_address_t* own) { ucp_worker_release_address(worker, own); };
    const std::unique_ptr<ucp_address_t, decltype(release)> owned(address, release);
    peer.send(oob_kind::address, {reinterpret_cast<const std::byte*>(address), length});
}

} // namespace

void session::open()
{
    _context = make_context();
    _worker  = make_worker(_context.get());
    send_own_address(_worker.get(), _peer);
    const std::vector<std::byte> theirs = _peer.receive(oob_kind::address, max_address_length);
    if (theirs.empty()) {
        give_up("{} sent an empty worker address", _peer.peer_name());
    }
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = reinterpret_cast<const ucp_address_t*>(theirs.data());
    check(ucp_ep_create(_worker.get(), &params, &_endpoint), "ucp_ep_create");
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
            ucp_worker_progress(_worker.get());
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
        if (ucp_worker_progress(_worker.get()) == 0 && ++_idle >= idle_limit) {
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

void session::rest()
{
    _idle = 0;
    _peer.check_peer();
    // The peer may be waiting for this processor.
    sched_yield();
}

} // namespace ucxl::perf
