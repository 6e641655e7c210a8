#include "ucp_process.h"

#include "tools/common/failure.h"

#include <algorithm>

namespace ucxl::perf
{

using tools::check;

namespace
{

// After a failure of the device nothing may complete any more.
constexpr unsigned close_limit = 1 << 20;

context_handle make_context(std::uint64_t features)
{
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params{};
    params.field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
    params.features          = features;
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

} // namespace

ucp_process ucp_process::create(std::uint64_t features)
{
    ucp_process own;
    own._context = make_context(features);
    own._worker  = make_worker(own._context.get());
    return own;
}

ucp_ep_h ucp_process::loopback()
{
    if (_loopback == nullptr) {
        _loopback = connect_to(worker(), address());
    }
    return _loopback;
}

void ucp_process::finish(ucs_status_ptr_t request, const char* call) const
{
    ucs_status_t status = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS : UCS_PTR_STATUS(request);
    while (status == UCS_INPROGRESS) {
        ucp_worker_progress(worker());
        status = ucp_request_check_status(request);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    check(status, call);
}

std::vector<std::byte> ucp_process::address() const
{
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check(ucp_worker_get_address(worker(), &address, &length), "ucp_worker_get_address");
    const auto release = [this](ucp_address_t* own) { ucp_worker_release_address(worker(), own); };
    const std::unique_ptr<ucp_address_t, decltype(release)> owned(address, release);
    const auto* const bytes = reinterpret_cast<const std::byte*>(address);
    return {bytes, bytes + length};
}

void ucp_process::close_loopback()
{
    if (_loopback == nullptr) {
        return;
    }
    ucp_request_param_t param{};
    param.op_attr_mask             = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags                    = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(_loopback, nullptr), &param);
    if (UCS_PTR_IS_PTR(request)) {
        for (unsigned i = 0; i < close_limit && ucp_request_check_status(request) == UCS_INPROGRESS; ++i) {
            ucp_worker_progress(worker());
        }
        ucp_request_free(request);
    }
}

ucp_ep_h connect_to(ucp_worker_h worker, std::span<const std::byte> address)
{
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint = nullptr;
    check(ucp_ep_create(worker, &params, &endpoint), "ucp_ep_create");
    return endpoint;
}

std::vector<std::byte> pack_key(ucp_context_h context, ucp_mem_h memh)
{
    void* key          = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(context, memh, &key, &length), "ucp_rkey_pack");
    const std::unique_ptr<void, decltype(&ucp_rkey_buffer_release)> owned(key, ucp_rkey_buffer_release);
    const auto* const bytes = static_cast<const std::byte*>(key);
    return {bytes, bytes + length};
}

rkey_handle unpack_key(ucp_ep_h endpoint, std::span<const std::byte> packed)
{
    ucp_rkey_h key = nullptr;
    check(ucp_ep_rkey_unpack(endpoint, packed.data(), &key), "ucp_ep_rkey_unpack");
    return rkey_handle(key);
}

} // namespace ucxl::perf
