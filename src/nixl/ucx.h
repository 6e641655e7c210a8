// The UCX of this process, and what of it is called here. The backend is not linked with it, so that it works with
// the UCX of the system and with the one that NIXL's wheel brings along under other names, and is never the second one
// of a process.
//
// Example: const ucx_functions* ucp = ucx(); if (ucp == nullptr) { /* there is none; the reason was logged */ }
#pragma once

#include <ucm/api/ucm.h>
#include <ucp/api/ucp.h>

#include <cstdint>
#include <string_view>

namespace ucxl::nixl
{

struct ucx_functions {
    decltype(&::ucp_config_read) config_read;
    decltype(&::ucp_config_modify) config_modify;
    decltype(&::ucp_config_release) config_release;
    decltype(&::ucp_cleanup) cleanup;
    decltype(&::ucp_worker_create) worker_create;
    decltype(&::ucp_worker_destroy) worker_destroy;
    decltype(&::ucp_worker_progress) worker_progress;
    decltype(&::ucp_worker_get_address) worker_get_address;
    decltype(&::ucp_worker_release_address) worker_release_address;
    decltype(&::ucp_worker_set_am_recv_handler) set_am_handler;
    decltype(&::ucp_am_send_nbx) am_send;
    decltype(&::ucp_am_recv_data_nbx) am_recv_data;
    decltype(&::ucp_ep_create) ep_create;
    decltype(&::ucp_ep_query) ep_query;
    decltype(&::ucp_ep_close_nbx) ep_close;
    decltype(&::ucp_ep_flush_nbx) ep_flush;
    decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack;
    decltype(&::ucp_rkey_destroy) rkey_destroy;
    decltype(&::ucp_mem_map) mem_map;
    decltype(&::ucp_mem_unmap) mem_unmap;
    decltype(&::ucm_vm_munmap) retire_registrations; // out of the caches; what has one keeps it
    decltype(&::ucp_rkey_pack) rkey_pack;
    decltype(&::ucp_rkey_buffer_release) rkey_buffer_release;
    decltype(&::ucp_put_nbx) put;
    decltype(&::ucp_get_nbx) get;
    decltype(&::ucp_request_check_status) request_status;
    decltype(&::ucp_request_cancel) request_cancel;
    decltype(&::ucp_request_free) request_free;
};

// The end of something as another agent tells it: an error if that is no end.
inline ucs_status_t told_end(std::int32_t told)
{
    return told > UCS_ERR_LAST && told <= UCS_OK ? static_cast<ucs_status_t>(told) : UCS_ERR_INVALID_PARAM;
}

// The libucp that the process has, else libucp.so.0; null if there is none, which is logged once.
const ucx_functions* ucx();

// Whether UCX has this transport for the endpoint.
bool has_transport(ucp_ep_h endpoint, std::string_view name);

} // namespace ucxl::nixl
