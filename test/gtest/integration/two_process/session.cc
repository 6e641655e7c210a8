#include "session.h"

#include <chrono>
#include <cstdlib>
#include <ctime>

#include <poll.h>
#include <sched.h>

namespace ucxl::two_process
{

context_handle::context_handle(const peer_arguments& arguments, bool many_workers)
    : test::context({.features = test::context_options{}.features | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 |
                                 (arguments.wakeup ? UCP_FEATURE_WAKEUP : 0),
                     .for_threads = many_workers})
{
}

session::session(const peer_arguments& arguments, const context_handle& context, const session_options& options)
    : _arguments(arguments),
      _channel(arguments.role == 2 ? channel::loopback : first_channel_fd + static_cast<int>(arguments.thread)),
      _context(context.get()),
      _worker(options.shared_worker != nullptr ? options.shared_worker : test::open_worker(_context)),
      _owns_worker(options.shared_worker == nullptr)
{
    if (arguments.wakeup) {
        check_ok(ucp_worker_get_efd(_worker, &_event_fd), "ucp_worker_get_efd");
    }
    connect(options);
}

session::~session()
{
    if (_owns_worker) {
        ucp_worker_destroy(_worker);
    }
}

void session::connect(const session_options& options)
{
    const bytes other = exchange(test::address_of(_worker));
    ucp_ep_params_t params{};
    if (options.error_handling) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode        = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = this;
        params.err_handler.cb  = [](void* self, ucp_ep_h, ucs_status_t status) {
            static_cast<session*>(self)->_endpoint_error = status;
        };
    }
    _endpoint = test::connect(_worker, other, params);
    if (_event_fd >= 0 && options.error_handling && std::getenv("UCX_KEEPALIVE_INTERVAL") != nullptr) {
        let_the_peer_ask();
    }
}

// With wakeup and datagrams UCX answers in a thread of its own when the peer asks whether this endpoint exists. The
// first look-up of an endpoint moves it from one table of UCX into another, where the main thread looks without a lock
// (ucs_ptr_map_get in UCX 1.18.1). If both look at that time, the thread may find nothing and answer that the endpoint
// is gone. So the first question is answered before the first message is sent. A process that got no processor for
// that time has not asked yet: rounds count as well as time.
void session::let_the_peer_ask()
{
    flush();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    for (int rounds = 0; rounds < 50 || std::chrono::steady_clock::now() < end; ++rounds) {
        if (!progress_or_arm()) {
            pollfd descriptor = {.fd = _event_fd, .events = POLLIN, .revents = 0};
            poll(&descriptor, 1, 1);
        }
    }
    barrier();
}

// Returns false if there is nothing to do and, with wakeup, the worker is armed.
bool session::progress_or_arm()
{
    if (ucp_worker_progress(_worker) != 0) {
        return true;
    }
    if (_event_fd < 0) {
        return false;
    }
    const ucs_status_t status = ucp_worker_arm(_worker);
    check(status == UCS_OK || status == UCS_ERR_BUSY, "ucp_worker_arm: {}", ucs_status_string(status));
    return status == UCS_ERR_BUSY;
}

void session::turn()
{
    if (_event_fd >= 0) {
        if (ucp_worker_progress(_worker) == 0) {
            check_ok(ucp_worker_wait(_worker), "ucp_worker_wait");
        }
    } else if (progress_or_arm()) {
        _idle_turns = 0;
    } else {
        rest();
    }
}

// More processes than processors poll for each other while tests run. One that has waited in vain for a while leaves
// its processor to one that has work.
void session::rest()
{
    constexpr unsigned turns_before_sleep   = 50;
    constexpr timespec shorter_than_a_slice = {.tv_sec = 0, .tv_nsec = 20'000};
    if (++_idle_turns < turns_before_sleep) {
        sched_yield();
    } else {
        nanosleep(&shorter_than_a_slice, nullptr);
    }
}

void session::turn_for_channel()
{
    if (progress_or_arm()) {
        _idle_turns = 0;
        return;
    }
    if (_event_fd < 0) {
        rest();
        return;
    }
    pollfd descriptors[] = {{.fd = _event_fd, .events = POLLIN, .revents = 0},
                            {.fd = _channel.fd(), .events = POLLIN, .revents = 0}};
    poll(descriptors, 2, -1);
}

ucs_status_t session::wait(ucs_status_ptr_t request)
{
    return test::finish(request, [this] { turn(); });
}

void session::flush()
{
    const ucp_request_param_t param{};
    check_ok(wait(ucp_ep_flush_nbx(_endpoint, &param)), "ucp_ep_flush_nbx");
}

bytes session::receive()
{
    for (;;) {
        if (auto message = _channel.try_receive()) {
            return std::move(*message);
        }
        turn_for_channel();
    }
}

bytes session::exchange(std::span<const std::byte> message)
{
    _channel.send(message);
    return receive();
}

void session::close_endpoint(unsigned flags)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags        = flags;
    const auto status  = wait(ucp_ep_close_nbx(_endpoint, &param));
    if (flags == 0) {
        check_ok(status, "ucp_ep_close_nbx");
    }
    _endpoint = nullptr;
}

void session::close()
{
    barrier();
    close_endpoint(0);
    barrier();
}

void session::abandon()
{
    close_endpoint(UCP_EP_CLOSE_FLAG_FORCE);
}

} // namespace ucxl::two_process
