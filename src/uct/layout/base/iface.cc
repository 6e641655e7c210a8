#include "iface.h"

#include "abi/log.h"

#include <climits>

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

ucs_status_t pending_add(uct_ep_h, uct_pending_req_t*, unsigned)
{
    return UCS_ERR_BUSY; // no operation ever has to wait
}

void pending_purge(uct_ep_h, uct_pending_purge_callback_t, void*)
{
}

} // namespace

void base_interface_ops(uct_iface_ops_t& ops)
{
    abi::stock_interface_ops(ops);
    ops.iface_progress_enable    = progress_switch;
    ops.iface_progress_disable   = progress_switch;
    ops.iface_progress           = progress;
    ops.iface_event_fd_get       = event_fd_get;
    ops.iface_event_arm          = event_arm;
    ops.iface_get_device_address = get_device_address;
}

void query_base_interface(base_interface& self, std::size_t address_length, double bandwidth, uct_iface_attr_t& attr)
{
    abi::query_interface(self.super, attr);
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

ucs_status_t open_base_interface(base_interface& self, const char* transport, uct_iface_ops_t& ops,
                                 const abi::interface_operations& operations, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* config)
{
    self.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self.event_fd < 0) {
        ucs_error("%s: eventfd failed: %m", transport);
        return UCS_ERR_IO_ERROR;
    }
    const auto status = abi::open_interface(self.super, ops, operations, md, worker, params, config);
    if (status != UCS_OK) {
        close(self.event_fd);
    }
    return status;
}

void close_base_interface(base_interface& self)
{
    abi::close_interface(self.super);
    close(self.event_fd);
}

void base_endpoint_ops(uct_iface_ops_t& ops)
{
    ops.ep_pending_add   = pending_add;
    ops.ep_pending_purge = pending_purge;
    ops.ep_create        = abi::create_endpoint;
    ops.ep_destroy       = abi::destroy_endpoint;
}

} // namespace ucxl
