#include "iface.h"

#include "not_supported.h"

#include <ucs/debug/log_def.h>

#include <climits>
#include <new>

#include <sys/eventfd.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

ucs_status_t get_device_address(uct_iface_h, uct_device_addr_t*)
{
    return UCS_OK;
}

unsigned progress(uct_iface_h)
{
    return 0;
}

// The worker does not call this: every useless call delays the transports that must poll.
void progress_switch(uct_iface_h, unsigned)
{
}

ucs_status_t event_fd_get(uct_iface_h iface, int* fd)
{
    *fd = reinterpret_cast<base_interface*>(iface)->event_fd;
    return UCS_OK;
}

ucs_status_t event_arm(uct_iface_h, unsigned)
{
    return UCS_OK;
}

void vfs_refresh(uct_iface_h)
{
}

ucs_status_t pending_add(uct_ep_h, uct_pending_req_t*, unsigned)
{
    return UCS_ERR_BUSY; // no operation ever has to wait
}

void pending_purge(uct_ep_h, uct_pending_purge_callback_t, void*)
{
}

ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep)
{
    auto* self = new (std::nothrow) abi::base_ep{};
    if (self == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    int init_count = 1;
    const auto status =
        uct_base_ep_t_init(self, &uct_base_ep_t_class, &init_count, reinterpret_cast<abi::base_iface*>(params->iface));
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, init_count);
        delete self;
        return status;
    }
    *ep = &self->super;
    return UCS_OK;
}

void ep_destroy(uct_ep_h ep)
{
    auto* self = reinterpret_cast<abi::base_ep*>(ep);
    ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, -1);
    delete self;
}

} // namespace

void base_interface_ops(uct_iface_ops_t& ops)
{
    ops.iface_flush              = uct_base_iface_flush;
    ops.iface_fence              = uct_base_iface_fence;
    ops.iface_progress_enable    = progress_switch;
    ops.iface_progress_disable   = progress_switch;
    ops.iface_progress           = progress;
    ops.iface_event_fd_get       = event_fd_get;
    ops.iface_event_arm          = event_arm;
    ops.iface_get_device_address = get_device_address;
    ops.iface_is_reachable       = uct_base_iface_is_reachable;
}

abi::iface_internal_ops base_internal_ops(decltype(abi::iface_internal_ops::iface_estimate_perf) estimate_perf,
                                          decltype(abi::iface_internal_ops::iface_is_reachable_v2) is_reachable)
{
    return {
        .iface_estimate_perf   = estimate_perf,
        .iface_vfs_refresh     = vfs_refresh,
        .ep_query              = not_supported,
        .ep_invalidate         = not_supported,
        .ep_connect_to_ep_v2   = not_supported,
        .iface_is_reachable_v2 = is_reachable,
        .ep_is_connected       = uct_base_ep_is_connected,
    };
}

void query_base_interface(base_interface& self, std::size_t address_length, double bandwidth, uct_iface_attr_t& attr)
{
    uct_base_iface_query(&self.super, &attr);
    attr.iface_addr_len          = address_length;
    attr.device_addr_len         = 0;
    attr.ep_addr_len             = 0;
    attr.cap.event_flags         = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    attr.cap.put.max_short       = UINT_MAX;
    attr.cap.put.max_zcopy       = SIZE_MAX;
    attr.cap.put.opt_zcopy_align = 1;
    attr.cap.put.align_mtu       = 1;
    attr.cap.put.max_iov         = 1;
    attr.cap.get.max_zcopy       = SIZE_MAX;
    attr.cap.get.opt_zcopy_align = 1;
    attr.cap.get.align_mtu       = 1;
    attr.cap.get.max_iov         = 1;
    attr.cap.am.opt_zcopy_align  = 1;
    attr.cap.am.align_mtu        = 1;
    attr.cap.am.max_iov          = 1;
    attr.bandwidth.dedicated     = 0;
    attr.bandwidth.shared        = bandwidth;
    attr.latency                 = ucs_linear_func_t{.c = self.latency, .m = 0};
    attr.overhead                = self.overhead;
    attr.priority                = 0;
}

void estimate_base_interface(const base_interface& self, double bandwidth, abi::perf_attr& attr)
{
    using enum abi::perf_attr::field;
    const auto wants = [&](abi::perf_attr::field field) { return (attr.field_mask & field) != 0; };
    if (wants(has_bandwidth)) {
        attr.bandwidth.dedicated = 0;
        attr.bandwidth.shared    = bandwidth;
    }
    if (wants(has_send_pre_overhead)) {
        attr.send_pre_overhead = self.overhead;
    }
    if (wants(has_send_post_overhead)) {
        attr.send_post_overhead = 0;
    }
    if (wants(has_recv_overhead)) {
        attr.recv_overhead = 0; // UCP asserts this value
    }
    if (wants(has_latency)) {
        attr.latency = ucs_linear_func_t{.c = self.latency, .m = 0};
    }
    if (wants(has_max_inflight_eps)) {
        attr.max_inflight_eps = SIZE_MAX;
    }
    if (wants(has_flags)) {
        attr.flags = 0;
    }
}

ucs_status_t open_base_interface(base_interface& self, const char* transport, uct_iface_ops_t& ops,
                                 abi::iface_internal_ops& internal_ops, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* config)
{
    self.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self.event_fd < 0) {
        ucs_error("%s: eventfd failed: %m", transport);
        return UCS_ERR_IO_ERROR;
    }
    int init_count    = 1;
    const auto status = uct_base_iface_t_init(&self.super, &uct_base_iface_t_class, &init_count, &ops, &internal_ops,
                                              md, worker, params, config);
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(&uct_base_iface_t_class, &self.super, init_count);
        close(self.event_fd);
    }
    return status;
}

void close_base_interface(base_interface& self)
{
    ucs_class_call_cleanup_chain(&uct_base_iface_t_class, &self.super, -1);
    close(self.event_fd);
}

void base_endpoint_ops(uct_iface_ops_t& ops)
{
    ops.ep_pending_add   = pending_add;
    ops.ep_pending_purge = pending_purge;
    ops.ep_flush         = uct_base_ep_flush;
    ops.ep_fence         = uct_base_ep_fence;
    ops.ep_create        = ep_create;
    ops.ep_destroy       = ep_destroy;
}

} // namespace ucxl
