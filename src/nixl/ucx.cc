#include "ucx.h"

#include "log.h"
#include "sys/search_order.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::nixl
{

namespace
{

// The file of a libucp that is loaded, or "". Names in wheels are mangled: libucp-1a2b3c.so.0.
std::string loaded_libucp()
{
    const auto files = loaded_files();
    const auto found = std::ranges::find_if(files, [](std::string_view file) {
        const auto name = file.substr(file.rfind('/') + 1);
        return name.starts_with("libucp") && !name.starts_with("libucp_");
    });
    return found == files.end() ? "" : *found;
}

template <typename Function>
bool find(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        log_error("{} is missing in UCX", name);
    }
    return function != nullptr;
}

std::optional<ucx_functions> functions_of(void* library)
{
    ucx_functions found{};
    const bool has_all =
        find(library, "ucp_config_read", found.config_read) &&
        find(library, "ucp_config_modify", found.config_modify) &&
        find(library, "ucp_config_release", found.config_release) && find(library, "ucp_cleanup", found.cleanup) &&
        find(library, "ucp_worker_create", found.worker_create) &&
        find(library, "ucp_worker_destroy", found.worker_destroy) &&
        find(library, "ucp_worker_progress", found.worker_progress) &&
        find(library, "ucp_worker_get_address", found.worker_get_address) &&
        find(library, "ucp_worker_release_address", found.worker_release_address) &&
        find(library, "ucp_worker_set_am_recv_handler", found.set_am_handler) &&
        find(library, "ucp_am_send_nbx", found.am_send) && find(library, "ucp_am_recv_data_nbx", found.am_recv_data) &&
        find(library, "ucp_ep_create", found.ep_create) && find(library, "ucp_ep_query", found.ep_query) &&
        find(library, "ucp_ep_close_nbx", found.ep_close) && find(library, "ucp_ep_flush_nbx", found.ep_flush) &&
        find(library, "ucp_ep_rkey_unpack", found.ep_rkey_unpack) && find(library, "ucp_mem_map", found.mem_map) &&
        find(library, "ucp_mem_unmap", found.mem_unmap) && find(library, "ucm_vm_munmap", found.retire_registrations) &&
        find(library, "ucp_rkey_destroy", found.rkey_destroy) && find(library, "ucp_rkey_pack", found.rkey_pack) &&
        find(library, "ucp_rkey_buffer_release", found.rkey_buffer_release) &&
        find(library, "ucp_put_nbx", found.put) && find(library, "ucp_get_nbx", found.get) &&
        find(library, "ucp_request_check_status", found.request_status) &&
        find(library, "ucp_request_cancel", found.request_cancel) &&
        find(library, "ucp_request_free", found.request_free);
    return has_all ? std::optional(found) : std::nullopt;
}

std::optional<ucx_functions> find_ucx()
{
    const std::string loaded = loaded_libucp();
    void* const library      = dlopen(loaded.empty() ? "libucp.so.0" : loaded.c_str(), RTLD_NOW); // stays loaded
    if (library == nullptr) {
        log_error("there is no UCX: {}", dlerror());
        return std::nullopt;
    }
    return functions_of(library);
}

} // namespace

const ucx_functions* ucx()
{
    static const auto found = find_ucx();
    return found ? &*found : nullptr;
}

bool has_transport(ucp_ep_h endpoint, std::string_view name)
{
    std::array<ucp_transport_entry_t, 64> entries{};
    ucp_ep_attr_t attr{};
    attr.field_mask             = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.entries     = entries.data();
    attr.transports.num_entries = entries.size();
    attr.transports.entry_size  = sizeof(entries[0]);
    if (ucx()->ep_query(endpoint, &attr) != UCS_OK) {
        return false;
    }
    return std::ranges::any_of(std::span(entries).first(attr.transports.num_entries),
                               [&](const auto& each) { return each.transport_name == name; });
}

} // namespace ucxl::nixl
