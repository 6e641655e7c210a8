#include "transports.h"

#include "settings.h"
#include "ucx_function.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ucp/api/ucp.h>

namespace ucxl::mpi
{

namespace
{

std::atomic<bool> peers_tell{false};

// Of UCX's second format, which UCX writes if UCX_ADDRESS_VERSION asks for it: the first four bits of an address are 1.
bool has_library(const ucp_address_t* address)
{
    std::uint8_t header = 0;
    std::memcpy(&header, address, sizeof(header));
    return (header & 0xf) >= 1;
}

} // namespace

void complete_transports()
{
    const char* const set = std::getenv("UCX_TLS");
    if (set == nullptr || set[0] == '^' || std::strstr(set, "lay_copy") != nullptr || std::strstr(set, "all") == set) {
        return;
    }
    const std::string completed = std::string(set) + ",lay_copy";
    setenv("UCX_TLS", completed.c_str(), 1);
    log_info("UCX_TLS=%s, to which lay_copy was added", completed.c_str());
}

void require_library_of_peers()
{
    const char* const version = std::getenv("UCX_ADDRESS_VERSION");
    if (version != nullptr && std::strcmp(version, "v2") != 0) {
        log_info("UCX_ADDRESS_VERSION=%s does not tell peers that this process has the library", version);
        return;
    }
    setenv("UCX_ADDRESS_VERSION", "v2", 1);
    peers_tell.store(true, std::memory_order_release);
}

} // namespace ucxl::mpi

// What a process without this library would receive from a window, or send into one, would never end.
extern "C" [[gnu::visibility("default")]] ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params,
                                                                     ucp_ep_h* endpoint)
{
    using namespace ucxl::mpi;
    static const auto next = ucx_function(ucp_ep_create, "ucp_ep_create");
    if (next == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (peers_tell.load(std::memory_order_acquire) && (params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS) &&
        !has_library(params->address)) {
        log_error("a process of this job runs without this library, but all need it");
        return UCS_ERR_UNSUPPORTED;
    }
    return next(worker, params, endpoint);
}
