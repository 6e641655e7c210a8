#include "lay_copy.h"

#include "lay_copy_ep.h"

#include <ucs/debug/log_def.h>

#include <climits>
#include <cstring>
#include <new>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

struct lay_copy_config {
    uct_iface_config super;
    double short_bandwidth; // bytes per second
    double zcopy_bandwidth;
    double overhead; // seconds
    double latency;
};

// Why these prices: UCP asks for SHORT when it plans an eager protocol and for ZCOPY when it plans a rendezvous
// pipeline. Eager is faster for windows at every size, because the FIFO stays in cache while pipeline fragments do not;
// the gap makes UCP see that.
ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(lay_copy_config, super), UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {"SHORT_BW", "30GBs", "Bandwidth UCP is told for short operations, with which it plans eager protocols",
     offsetof(lay_copy_config, short_bandwidth), UCS_CONFIG_TYPE_BW},
    {"ZCOPY_BW", "3GBs", "Bandwidth UCP is told for zero-copy operations, with which it plans rendezvous pipelines",
     offsetof(lay_copy_config, zcopy_bandwidth), UCS_CONFIG_TYPE_BW},
    {"OVERHEAD", "50ns", "CPU time UCP is told for starting an operation", offsetof(lay_copy_config, overhead),
     UCS_CONFIG_TYPE_TIME},
    {"LATENCY", "50ns", "Latency UCP is told for an operation", offsetof(lay_copy_config, latency),
     UCS_CONFIG_TYPE_TIME},
    {}};

struct lay_copy_iface {
    abi::base_iface super;
    std::uint64_t id; // tells this interface from every other one; it only reaches itself
    int event_fd;     // never signalled: nothing completes later
    double short_bandwidth;
    double zcopy_bandwidth;
    double overhead;
    double latency;
};

lay_copy_iface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<lay_copy_iface*>(iface);
}

void set_operation_caps(uct_iface_attr_t& attr)
{
    attr.cap.put.max_short       = UINT_MAX;
    attr.cap.put.max_zcopy       = SIZE_MAX;
    attr.cap.put.opt_zcopy_align = 1;
    attr.cap.put.align_mtu       = 1;
    attr.cap.put.max_iov         = 1;
    attr.cap.get.max_short       = UINT_MAX;
    attr.cap.get.max_zcopy       = SIZE_MAX;
    attr.cap.get.opt_zcopy_align = 1;
    attr.cap.get.align_mtu       = 1;
    attr.cap.get.max_iov         = 1;
    attr.cap.am.opt_zcopy_align  = 1;
    attr.cap.am.align_mtu        = 1;
    attr.cap.am.max_iov          = 1;
}

ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr)
{
    const lay_copy_iface& self = self_of(iface);
    uct_base_iface_query(&self_of(iface).super, attr);
    attr->iface_addr_len  = sizeof(self.id);
    attr->device_addr_len = 0;
    attr->ep_addr_len     = 0;
    attr->cap.flags       = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_GET_SHORT |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY | UCT_IFACE_FLAG_PENDING;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    set_operation_caps(*attr);
    attr->bandwidth.dedicated = 0;
    attr->bandwidth.shared    = self.short_bandwidth;
    attr->latency             = ucs_linear_func_t{.c = self.latency, .m = 0};
    attr->overhead            = self.overhead;
    attr->priority            = 0;
    return UCS_OK;
}

bool is_zcopy(abi::ep_operation operation)
{
    return operation == abi::ep_operation::put_zcopy || operation == abi::ep_operation::get_zcopy;
}

ucs_status_t estimate_perf(uct_iface_h iface, abi::perf_attr* attr)
{
    using enum abi::perf_attr::field;
    const lay_copy_iface& self = self_of(iface);
    const auto wants           = [&](abi::perf_attr::field field) { return (attr->field_mask & field) != 0; };
    if (wants(has_bandwidth)) {
        const bool zcopy          = wants(has_operation) && is_zcopy(attr->operation);
        attr->bandwidth.dedicated = 0;
        attr->bandwidth.shared    = zcopy ? self.zcopy_bandwidth : self.short_bandwidth;
    }
    if (wants(has_send_pre_overhead)) {
        attr->send_pre_overhead = self.overhead;
    }
    if (wants(has_send_post_overhead)) {
        attr->send_post_overhead = 0;
    }
    if (wants(has_recv_overhead)) {
        attr->recv_overhead = 0; // UCP asserts so
    }
    if (wants(has_latency)) {
        attr->latency = ucs_linear_func_t{.c = self.latency, .m = 0};
    }
    if (wants(has_max_inflight_eps)) {
        attr->max_inflight_eps = SIZE_MAX;
    }
    if (wants(has_flags)) {
        attr->flags = 0;
    }
    return UCS_OK;
}

ucs_status_t get_device_address(uct_iface_h, uct_device_addr_t*)
{
    return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* address)
{
    std::memcpy(address, &self_of(iface).id, sizeof(std::uint64_t));
    return UCS_OK;
}

int is_reachable_v2(uct_iface_h iface, const abi::is_reachable_params* params)
{
    if ((params->field_mask & abi::is_reachable_params::has_iface_addr) == 0 || params->iface_addr == nullptr) {
        return 0;
    }
    return std::memcmp(params->iface_addr, &self_of(iface).id, sizeof(std::uint64_t)) == 0;
}

unsigned progress(uct_iface_h)
{
    return 0;
}

ucs_status_t event_fd_get(uct_iface_h iface, int* fd)
{
    *fd = self_of(iface).event_fd;
    return UCS_OK;
}

ucs_status_t event_arm(uct_iface_h, unsigned)
{
    return UCS_OK;
}

void vfs_refresh(uct_iface_h)
{
}

template <typename... Args>
ucs_status_t not_supported(Args...)
{
    return UCS_ERR_UNSUPPORTED;
}

abi::iface_internal_ops internal_ops = {
    .iface_estimate_perf   = estimate_perf,
    .iface_vfs_refresh     = vfs_refresh,
    .ep_query              = not_supported,
    .ep_invalidate         = not_supported,
    .ep_connect_to_ep_v2   = not_supported,
    .iface_is_reachable_v2 = is_reachable_v2,
    .ep_is_connected       = uct_base_ep_is_connected,
};

void iface_close(uct_iface_h iface)
{
    lay_copy_iface* self = &self_of(iface);
    uct_base_iface_progress_disable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    ucs_class_call_cleanup_chain(&uct_base_iface_t_class, &self->super, -1);
    close(self->event_fd);
    delete self;
}

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    lay_copy_ep_ops(ops);
    ops.iface_flush              = uct_base_iface_flush;
    ops.iface_fence              = uct_base_iface_fence;
    ops.iface_progress_enable    = uct_base_iface_progress_enable;
    ops.iface_progress_disable   = uct_base_iface_progress_disable;
    ops.iface_progress           = progress;
    ops.iface_event_fd_get       = event_fd_get;
    ops.iface_event_arm          = event_arm;
    ops.iface_close              = iface_close;
    ops.iface_query              = iface_query;
    ops.iface_get_device_address = get_device_address;
    ops.iface_get_address        = get_address;
    ops.iface_is_reachable       = uct_base_iface_is_reachable;
    return ops;
}

ucs_status_t iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                        const uct_iface_config_t* tl_config, uct_iface_h* iface)
{
    const auto& config = *reinterpret_cast<const lay_copy_config*>(tl_config);
    auto* self         = new (std::nothrow) lay_copy_iface{};
    if (self == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    self->event_fd        = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->short_bandwidth = config.short_bandwidth;
    self->zcopy_bandwidth = config.zcopy_bandwidth;
    self->overhead        = config.overhead;
    self->latency         = config.latency;
    if (self->event_fd < 0 || getrandom(&self->id, sizeof(self->id), 0) != sizeof(self->id)) {
        ucs_error("lay_copy: no event fd or no random number: %m");
        close(self->event_fd);
        delete self;
        return UCS_ERR_IO_ERROR;
    }
    static uct_iface_ops_t iface_ops = make_ops();
    int init_count                   = 1;
    const auto status = uct_base_iface_t_init(&self->super, &uct_base_iface_t_class, &init_count, &iface_ops,
                                              &internal_ops, md, worker, params, tl_config);
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(&uct_base_iface_t_class, &self->super, init_count);
        close(self->event_fd);
        delete self;
        return status;
    }
    *iface = &self->super.super;
    return UCS_OK;
}

ucs_status_t query_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices)
{
    return uct_single_device_resource(md, "layout", UCT_DEVICE_TYPE_ACC, UCS_SYS_DEVICE_ID_UNKNOWN, devices,
                                      num_devices);
}

} // namespace

constinit abi::tl lay_copy_tl = {
    .name          = "lay_copy",
    .query_devices = query_devices,
    .iface_open    = iface_open,
    .config        = {.name   = "lay_copy transport",
                      .prefix = "LAY_COPY_",
                      .table  = config_table,
                      .size   = sizeof(lay_copy_config),
                      .list   = {},
                      .flags  = 0},
    .list          = {},
};

} // namespace ucxl
