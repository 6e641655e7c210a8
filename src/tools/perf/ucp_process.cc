#include "ucp_process.h"

namespace ucxl::perf
{

ucp_process::ucp_process(std::uint64_t features)
    : _context({.features = features, .name = "ucx_layout_perftest"}), _worker(tools::open_worker(_context.get()))
{
}

ucp_process::~ucp_process()
{
    if (_loopback != nullptr) {
        constexpr unsigned rounds = 1 << 20; // after a failure of the device nothing may complete any more
        close_by_force(_worker, _loopback, rounds);
    }
    ucp_worker_destroy(_worker);
}

ucp_ep_h ucp_process::loopback()
{
    if (_loopback == nullptr) {
        _loopback = tools::connect(_worker, address());
    }
    return _loopback;
}

void ucp_process::finish(ucs_status_ptr_t request, const char* call) const
{
    tools::check(tools::finish(request, [this] { ucp_worker_progress(_worker); }), call);
}

void close_by_force(ucp_worker_h worker, ucp_ep_h endpoint, unsigned rounds)
{
    ucp_request_param_t param{};
    param.op_attr_mask             = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags                    = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request)) {
        for (unsigned i = 0; i < rounds && ucp_request_check_status(request) == UCS_INPROGRESS; ++i) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
}

} // namespace ucxl::perf
