#include "own_peer.h"

#include <chrono>

namespace ucxl::test
{

own_peer::own_peer(const own_peer_options& options)
    : _context({.config      = {{"TLS", "rc_x,lay_copy"}, {"RCACHE_ENABLE", options.keeps_memory ? "try" : "n"}},
                .for_threads = options.for_threads}),
      _worker(open_worker(_context.get()))
{
    ucp_ep_params_t params{};
    if (options.error_handling) {
        params.field_mask     = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode       = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    }
    _endpoint = connect(_worker, address_of(_worker), params);
    // Connects, so that the device does nothing for UCX itself later.
    for (const std::size_t length : {std::size_t{8}, _first_messages.size() / 2}) {
        check_ok(send(_first_messages.data(), _first_messages.data() + length, length), "the first messages");
    }
}

own_peer::~own_peer()
{
    const ucp_request_param_t param{};
    finish(ucp_ep_close_nbx(_endpoint, &param));
    ucp_worker_destroy(_worker);
}

bool own_peer::has_ended(ucs_status_ptr_t request, std::chrono::milliseconds patience)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        ucp_worker_progress(_worker);
    }
    return true;
}

ucs_status_t own_peer::finish(ucs_status_ptr_t request)
{
    check(has_ended(request, std::chrono::seconds(10)), "a request did not end");
    return test::finish(request, [] {});
}

ucs_status_t own_peer::send(const void* from, void* to, std::size_t length)
{
    const ucp_request_param_t param{};
    ++_tag;
    auto* const received = ucp_tag_recv_nbx(_worker, to, length, _tag, UINT64_MAX, &param);
    const auto sent      = finish(ucp_tag_send_nbx(_endpoint, from, length, _tag, &param));
    if (sent != UCS_OK && UCS_PTR_IS_PTR(received)) {
        ucp_request_cancel(_worker, received);
    }
    const auto done = finish(received);
    return sent != UCS_OK ? sent : done;
}

ucs_status_t own_peer::try_send(const void* from, void* to, std::size_t length, std::chrono::milliseconds patience)
{
    const ucp_request_param_t param{};
    ++_tag;
    ucs_status_t first_error = UCS_OK;
    for (auto* const request : {ucp_tag_recv_nbx(_worker, to, length, _tag, UINT64_MAX, &param),
                                ucp_tag_send_nbx(_endpoint, from, length, _tag, &param)}) {
        ucs_status_t status = UCS_ERR_TIMED_OUT;
        if (has_ended(request, patience)) {
            status = UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) : UCS_PTR_STATUS(request);
        }
        first_error = first_error == UCS_OK ? status : first_error;
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request); // when it ends
        }
    }
    return first_error;
}

} // namespace ucxl::test
