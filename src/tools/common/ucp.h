// The steps from a UCP context to an endpoint and to memory of a peer, on stock UCX. Not for tools alone: tests and
// benchmarks begin with them, too. Everything throws the failure of check.h with UCX's words.
//
// Example: const context used({.config = {{"TLS", "posix,lay_copy"}}});
//          ucp_worker_h worker = open_worker(used.get());
//          ucp_ep_h self       = connect(worker, address_of(worker));
#pragma once

#include "check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

namespace ucxl::tools
{

struct context_options {
    std::uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM | UCP_FEATURE_RMA;
    std::vector<std::pair<std::string, std::string>> config{}; // {"TLS", "posix,lay_copy"}
    bool for_threads = false;                                  // its workers are used by several threads at once
    const char* name = "";                                     // in UCX's messages
};

// As ucp_init(), in a program that may run with an older UCX than it was compiled with: UCX warns of these.
inline ucs_status_t init_any_ucx(const ucp_params_t& params, const ucp_config_t* config, ucp_context_h& context)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return ucp_init_version(UCP_API_MAJOR, std::min<unsigned>(UCP_API_MINOR, minor), &params, config, &context);
}

inline ucp_context_h open_context(const context_options& options)
{
    ucp_config_t* config;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucs_status_t status = UCS_OK;
    for (const auto& [name, value] : options.config) {
        status = status == UCS_OK ? ucp_config_modify(config, name.c_str(), value.c_str()) : status;
    }
    ucp_params_t params{};
    params.field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features          = options.features;
    params.mt_workers_shared = options.for_threads ? 1 : 0;
    if (*options.name != '\0') {
        params.field_mask |= UCP_PARAM_FIELD_NAME;
        params.name = options.name;
    }
    ucp_context_h made = nullptr;
    status             = status == UCS_OK ? init_any_ucx(params, config, made) : status;
    ucp_config_release(config);
    check(status, "ucp_init");
    return made;
}

class context
{
public:
    explicit context(const context_options& options = {}) : _handle(open_context(options)) {}
    explicit context(const char* tls) : context(context_options{.config = {{"TLS", tls}}}) {}
    ~context() { ucp_cleanup(_handle); }
    context(const context&)            = delete;
    context& operator=(const context&) = delete;

    ucp_context_h get() const { return _handle; }

private:
    ucp_context_h _handle;
};

inline ucp_worker_h open_worker(ucp_context_h context, ucs_thread_mode_t mode = UCS_THREAD_MODE_SINGLE)
{
    ucp_worker_params_t params{};
    params.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = mode;
    ucp_worker_h made  = nullptr;
    check(ucp_worker_create(context, &params, &made), "ucp_worker_create");
    return made;
}

inline std::vector<std::byte> address_of(ucp_worker_h worker)
{
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    std::vector<std::byte> bytes(begin, begin + length);
    ucp_worker_release_address(worker, address);
    return bytes;
}

// Bytes for UCP that a peer may have sent. UCP is not told how long an address, a packed key or an exported handle is,
// and follows the numbers in it: behind them there are zeros for what those numbers can say, so that nothing else is
// read.
inline std::vector<std::byte> padded(std::span<const std::byte> packed)
{
    constexpr std::size_t longest = 32768; // 64 keys of domains of 255 bytes at most
    std::vector<std::byte> bytes(packed.size() + longest);
    std::ranges::copy(packed, bytes.begin());
    return bytes;
}

// params: of the endpoint, without its address.
inline ucp_ep_h connect(ucp_worker_h worker, std::span<const std::byte> address, ucp_ep_params_t params = {})
{
    params.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    const auto bytes = padded(address);
    params.address   = reinterpret_cast<const ucp_address_t*>(bytes.data());
    ucp_ep_h made    = nullptr;
    check(ucp_ep_create(worker, &params, &made), "ucp_ep_create");
    return made;
}

// Calls progress() until the request is done, and frees it; or returns the immediate status.
template <typename Fn>
ucs_status_t finish(ucs_status_ptr_t request, Fn&& progress)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        progress();
    }
    const ucs_status_t status = ucp_request_check_status(request);
    ucp_request_free(request);
    return status;
}

// The bytes of ucp_rkey_pack().
inline std::vector<std::byte> pack_key(ucp_context_h context, ucp_mem_h memh)
{
    void* key          = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(context, memh, &key, &length), "ucp_rkey_pack");
    const auto* const begin = static_cast<const std::byte*>(key);
    std::vector<std::byte> bytes(begin, begin + length);
    ucp_rkey_buffer_release(key);
    return bytes;
}

struct destroy_key {
    void operator()(ucp_rkey* key) const { ucp_rkey_destroy(key); }
};
using key_handle = std::unique_ptr<ucp_rkey, destroy_key>;

inline key_handle unpack_key(ucp_ep_h endpoint, std::span<const std::byte> packed)
{
    ucp_rkey_h key = nullptr;
    check(ucp_ep_rkey_unpack(endpoint, padded(packed).data(), &key), "ucp_ep_rkey_unpack");
    return key_handle(key);
}

} // namespace ucxl::tools
