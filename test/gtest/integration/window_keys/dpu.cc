#include "dpu.h"

#include <algorithm>
#include <chrono>

namespace ucxl::test
{

namespace
{

constexpr std::size_t staging_bytes = 1 << 20;

} // namespace

// Nothing of imported memory may be copied by the CPU.
context_options dpu_context(bool caches_imports)
{
    context_options options{.config = {{"TLS", "rc_x,lay_copy"}, {"NET_DEVICES", dpu_device}, {"ZCOPY_THRESH", "0"}}};
    options.features |= caches_imports ? UCP_FEATURE_EXPORTED_MEMH : 0;
    return options;
}

dpu_side::dpu_side(ucp_context_h shared)
    : _context(shared), _worker(open_worker(_context)), _staging(_context, staging_bytes)
{
    connect();
}

dpu_side::dpu_side()
    : _own(std::make_unique<test::context>(dpu_context())), _context(_own->get()), _worker(open_worker(_context)),
      _staging(_context, staging_bytes)
{
    connect();
}

dpu_side::~dpu_side()
{
    close();
    ucp_worker_destroy(_worker);
}

void dpu_side::connect()
{
    ucp_ep_params_t params{};
    params.field_mask     = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode       = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    _endpoint             = test::connect(_worker, address_of(_worker), params);
    const ucp_request_param_t plain{};
    check_ok(finish(ucp_ep_flush_nbx(_endpoint, &plain)), "the first flush");
}

void dpu_side::close()
{
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags        = UCP_EP_CLOSE_FLAG_FORCE;
    finish(ucp_ep_close_nbx(_endpoint, &force));
}

ucs_status_t dpu_side::finish(ucs_status_ptr_t request)
{
    const bool may_hang = _patience != std::chrono::milliseconds(0);
    const auto deadline = std::chrono::steady_clock::now() + (may_hang ? _patience : std::chrono::seconds(10));
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(_worker);
        if (std::chrono::steady_clock::now() > deadline) {
            check(may_hang, "a request of the DPU did not end");
            return UCS_ERR_TIMED_OUT;
        }
    }
    return test::finish(request, [] {});
}

ucs_status_t dpu_side::put(const void* from, ucp_mem_h local, std::size_t length, void* to, ucp_mem_h remote)
{
    // Not freed where an operation with it never ends.
    const ucp_rkey_h key = test::unpack_key(_endpoint, test::pack_key(context(), remote)).release();
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    param.memh         = local;
    const auto status  = finish(ucp_put_nbx(_endpoint, from, length, reinterpret_cast<std::uint64_t>(to), key, &param));
    if (status == UCS_ERR_TIMED_OUT) {
        return status;
    }
    const ucp_request_param_t plain{};
    const auto flushed = finish(ucp_ep_flush_nbx(_endpoint, &plain));
    if (flushed == UCS_ERR_TIMED_OUT) {
        return flushed;
    }
    ucp_rkey_destroy(key);
    const auto first = status != UCS_OK ? status : flushed;
    if (first != UCS_OK) {
        close();
        connect();
    }
    return first;
}

ucs_status_t dpu_side::read(const imported_memory& memory, const void* address, std::span<std::byte> to)
{
    check(to.size() <= staging_bytes, "{} bytes to read", to.size());
    const auto status = put(address, memory.get(), to.size(), _staging.address(), _staging.memh());
    std::ranges::copy(_staging.bytes().first(to.size()), to.begin());
    return status;
}

ucs_status_t dpu_side::write(const imported_memory& memory, void* address, std::span<const std::byte> from)
{
    check(from.size() <= staging_bytes, "{} bytes to write", from.size());
    std::ranges::copy(from, _staging.address());
    return put(_staging.address(), _staging.memh(), from.size(), address, memory.get());
}

} // namespace ucxl::test
