#include "lay_shm.h"

#include "lay_shm_ep.h"
#include "process_identity.h"
#include "shm_import.h"

#include <ucs/debug/log_def.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <new>

#include <sys/eventfd.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

struct lay_shm_config {
    uct_iface_config super;
    double bandwidth; // bytes per second
    double overhead;  // seconds
    double latency;
};

// The overhead keeps small messages on the eager protocols, which are faster for them.
ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(lay_shm_config, super), UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {"BW", "20GBs", "Bandwidth UCP is told", offsetof(lay_shm_config, bandwidth), UCS_CONFIG_TYPE_BW},
    {"OVERHEAD", "2us", "CPU time UCP is told for starting an operation", offsetof(lay_shm_config, overhead),
     UCS_CONFIG_TYPE_TIME},
    {"LATENCY", "50ns", "Latency UCP is told for an operation", offsetof(lay_shm_config, latency),
     UCS_CONFIG_TYPE_TIME},
    {}};

struct lay_shm_iface {
    abi::base_iface super;
    process_identity owner;
    int event_fd; // never signalled: nothing completes later
    double bandwidth;
    double overhead;
    double latency;
};

// With the last interface nobody can use what is still mapped.
std::atomic<unsigned> num_ifaces{0};

lay_shm_iface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<lay_shm_iface*>(iface);
}

void set_operation_caps(uct_iface_attr_t& attr)
{
    attr.cap.put.max_short        = UINT_MAX;
    attr.cap.put.max_bcopy        = lay_shm_bcopy_length;
    attr.cap.put.max_zcopy        = SIZE_MAX;
    attr.cap.put.opt_zcopy_align  = 1;
    attr.cap.put.align_mtu        = 1;
    attr.cap.put.max_iov          = 1;
    attr.cap.get.max_bcopy        = lay_shm_bcopy_length;
    attr.cap.get.max_zcopy        = SIZE_MAX;
    attr.cap.get.opt_zcopy_align  = 1;
    attr.cap.get.align_mtu        = 1;
    attr.cap.get.max_iov          = 1;
    attr.cap.am.opt_zcopy_align   = 1;
    attr.cap.am.align_mtu         = 1;
    attr.cap.am.max_iov           = 1;
    constexpr std::uint64_t posts = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                                    UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
    constexpr std::uint64_t fetches = posts | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    attr.cap.atomic32.op_flags      = posts;
    attr.cap.atomic64.op_flags      = posts;
    attr.cap.atomic32.fop_flags     = fetches;
    attr.cap.atomic64.fop_flags     = fetches;
}

ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr)
{
    lay_shm_iface& self = self_of(iface);
    uct_base_iface_query(&self.super, attr);
    attr->iface_addr_len  = sizeof(self.owner);
    attr->device_addr_len = 0;
    attr->ep_addr_len     = 0;
    attr->cap.flags       = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_PENDING;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    set_operation_caps(*attr);
    attr->bandwidth.dedicated = 0;
    attr->bandwidth.shared    = self.bandwidth;
    attr->latency             = ucs_linear_func_t{.c = self.latency, .m = 0};
    attr->overhead            = self.overhead;
    attr->priority            = 0;
    return UCS_OK;
}

ucs_status_t estimate_perf(uct_iface_h iface, abi::perf_attr* attr)
{
    using enum abi::perf_attr::field;
    const lay_shm_iface& self = self_of(iface);
    const auto wants          = [&](abi::perf_attr::field field) { return (attr->field_mask & field) != 0; };
    if (wants(has_bandwidth)) {
        attr->bandwidth.dedicated = 0;
        attr->bandwidth.shared    = self.bandwidth;
    }
    if (wants(has_send_pre_overhead)) {
        attr->send_pre_overhead = self.overhead;
    }
    if (wants(has_send_post_overhead)) {
        attr->send_post_overhead = 0;
    }
    if (wants(has_recv_overhead)) {
        attr->recv_overhead = 0;
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
    std::memcpy(address, &self_of(iface).owner, sizeof(process_identity));
    return UCS_OK;
}

int is_reachable_v2(uct_iface_h iface, const abi::is_reachable_params* params)
{
    if ((params->field_mask & abi::is_reachable_params::has_iface_addr) == 0 || params->iface_addr == nullptr) {
        return 0;
    }
    process_identity other;
    std::memcpy(&other, params->iface_addr, sizeof(other));
    const process_identity& own = self_of(iface).owner;
    return may_share_memory(own, other) && other.pid != own.pid;
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
    lay_shm_iface* self = &self_of(iface);
    uct_base_iface_progress_disable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    ucs_class_call_cleanup_chain(&uct_base_iface_t_class, &self->super, -1);
    close(self->event_fd);
    delete self;
    if (num_ifaces.fetch_sub(1) == 1) {
        drop_idle_imports();
    }
}

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    lay_shm_ep_ops(ops);
    lay_shm_atomic_ops(ops);
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
    const auto& config = *reinterpret_cast<const lay_shm_config*>(tl_config);
    auto* self         = new (std::nothrow) lay_shm_iface{};
    if (self == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    self->owner     = process_identity::own();
    self->event_fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->bandwidth = config.bandwidth;
    self->overhead  = config.overhead;
    self->latency   = config.latency;
    if (self->event_fd < 0) {
        ucs_error("lay_shm: no event fd: %m");
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
    ++num_ifaces;
    *iface = &self->super.super;
    return UCS_OK;
}

ucs_status_t query_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices)
{
    if (process_identity::own().host == 0) {
        *devices     = nullptr; // without /proc there is no way to a peer's memory
        *num_devices = 0;
        return UCS_ERR_NO_DEVICE;
    }
    return uct_single_device_resource(md, "lay_shm", UCT_DEVICE_TYPE_SHM, UCS_SYS_DEVICE_ID_UNKNOWN, devices,
                                      num_devices);
}

} // namespace

constinit abi::tl lay_shm_tl = {
    .name          = "lay_shm",
    .query_devices = query_devices,
    .iface_open    = iface_open,
    .config        = {.name   = "lay_shm transport",
                      .prefix = "LAY_SHM_",
                      .table  = config_table,
                      .size   = sizeof(lay_shm_config),
                      .list   = {},
                      .flags  = 0},
    .list          = {},
};

} // namespace ucxl
