// The UCX of this process, and what of it is called here. The module is not linked with it, so that it works with
// Debian's UCX and with those that wheels bring along, under other names.
//
// Example: const auto& ucp = ucx(); ucp.worker_progress(worker);   // raises RuntimeError if there is no UCX
#pragma once

#include "failure.h"

#include <ucp/api/ucp.h>

namespace ucxl::python
{

struct ucx_functions {
    std::string file; // libucp, as the loader names it
    decltype(&::ucp_cleanup) cleanup;
    decltype(&::ucp_worker_create) worker_create;
    decltype(&::ucp_worker_destroy) worker_destroy;
    decltype(&::ucp_worker_progress) worker_progress;
    decltype(&::ucp_worker_get_address) worker_get_address;
    decltype(&::ucp_worker_release_address) worker_release_address;
    decltype(&::ucp_ep_create) ep_create;
    decltype(&::ucp_ep_close_nbx) ep_close;
    decltype(&::ucp_ep_flush_nbx) ep_flush;
    decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack;
    decltype(&::ucp_rkey_destroy) rkey_destroy;
    decltype(&::ucp_rkey_pack) rkey_pack;
    decltype(&::ucp_rkey_buffer_release) rkey_buffer_release;
    decltype(&::ucp_tag_send_nbx) tag_send;
    decltype(&::ucp_tag_send_sync_nbx) tag_send_sync;
    decltype(&::ucp_tag_recv_nbx) tag_recv;
    decltype(&::ucp_tag_recv_request_test) tag_recv_test;
    decltype(&::ucp_put_nbx) put;
    decltype(&::ucp_get_nbx) get;
    decltype(&::ucp_request_check_status) request_status;
    decltype(&::ucp_request_cancel) request_cancel;
    decltype(&::ucp_request_free) request_free;
};

// The libucp that the process has; else that of the package libucx, if it is installed; else libucp.so.0. Needs the
// GIL.
const ucx_functions& ucx();

} // namespace ucxl::python
