#include "lay_shm.h"

#include "base_interface.h"
#include "lay_shm_ep.h"
#include "process_identity.h"
#include "shm_import.h"

#include <atomic>
#include <cstring>
#include <new>

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
    base_interface base;
    process_identity owner;
    double bandwidth;
};

// With the last interface nobody can use what is still mapped.
std::atomic<unsigned> num_ifaces{0};

lay_shm_iface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<lay_shm_iface*>(iface);
}

void set_operation_caps(uct_iface_attr_t& attr)
{
    attr.cap.put.max_bcopy        = lay_shm_bcopy_length;
    attr.cap.get.max_bcopy        = lay_shm_bcopy_length;
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
    query_base_interface(self.base, sizeof(self.owner), self.bandwidth, *attr);
    attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_PENDING;
    set_operation_caps(*attr);
    return UCS_OK;
}

ucs_status_t estimate_perf(uct_iface_h iface, abi::perf_attr* attr)
{
    const lay_shm_iface& self = self_of(iface);
    estimate_base_interface(self.base, self.bandwidth, *attr);
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

void iface_close(uct_iface_h iface)
{
    lay_shm_iface* self = &self_of(iface);
    close_base_interface(self->base);
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
    base_interface_ops(ops);
    ops.iface_close       = iface_close;
    ops.iface_query       = iface_query;
    ops.iface_get_address = get_address;
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
    self->owner                                 = process_identity::own();
    self->bandwidth                             = config.bandwidth;
    self->base.overhead                         = config.overhead;
    self->base.latency                          = config.latency;
    static abi::iface_internal_ops internal_ops = base_internal_ops(estimate_perf, is_reachable_v2);
    static uct_iface_ops_t iface_ops            = make_ops();
    const auto status =
        open_base_interface(self->base, "lay_shm", iface_ops, internal_ops, md, worker, params, tl_config);
    if (status != UCS_OK) {
        delete self;
        return status;
    }
    ++num_ifaces;
    *iface = &self->base.super.super;
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
