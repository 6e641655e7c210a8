#include "iface.h"

#include "import.h"
#include "uct/layout/copy/md.h"

#include <atomic>
#include <cstring>
#include <new>

namespace ucxl
{

namespace
{

// When the last interface closes, nobody can use what is still imported.
std::atomic<unsigned> num_ifaces{0};

host_interface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<host_interface*>(iface);
}

ucs_status_t estimate_perf(uct_iface_h iface, abi::perf_attr* attr)
{
    const host_interface& self = self_of(iface);
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
    host_interface* self = &self_of(iface);
    close_base_interface(self->base);
    delete self;
    if (num_ifaces.fetch_sub(1) == 1) {
        drop_idle_imports();
    }
}

} // namespace

void host_interface_ops(uct_iface_ops_t& ops)
{
    base_interface_ops(ops);
    ops.iface_close       = iface_close;
    ops.iface_query       = query_host_interface;
    ops.iface_get_address = get_address;
}

ucs_status_t query_host_interface(uct_iface_h iface, uct_iface_attr_t* attr)
{
    host_interface& self = self_of(iface);
    query_base_interface(self.base, sizeof(self.owner), self.bandwidth, *attr);
    attr->cap.put.max_bcopy = host_bcopy_length;
    attr->cap.get.max_bcopy = host_bcopy_length;
    attr->cap.flags         = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING;
    return UCS_OK;
}

ucs_status_t open_host_interface(uct_iface_ops_t& ops, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* tl_config,
                                 uct_iface_h* iface)
{
    const auto& config = *reinterpret_cast<const host_interface_config*>(tl_config);
    auto* self         = new (std::nothrow) host_interface{};
    if (self == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    self->owner                                 = process_identity::own();
    self->bandwidth                             = config.bandwidth;
    self->base.overhead                         = config.overhead;
    self->base.latency                          = config.latency;
    static abi::iface_internal_ops internal_ops = base_internal_ops(estimate_perf, is_reachable_v2);
    const auto status =
        open_base_interface(self->base, md->component->name, ops, internal_ops, md, worker, params, tl_config);
    if (status != UCS_OK) {
        delete self;
        return status;
    }
    ++num_ifaces;
    *iface = &self->base.super.super;
    return UCS_OK;
}

ucs_status_t query_host_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices)
{
    // Without /proc no memory of a peer can be reached, and without lay_copy no window of this process.
    if (process_identity::own().host == 0 || is_lay_copy_left_out()) {
        *devices     = nullptr;
        *num_devices = 0;
        return UCS_ERR_NO_DEVICE;
    }
    return uct_single_device_resource(md, md->component->name, UCT_DEVICE_TYPE_SHM, UCS_SYS_DEVICE_ID_UNKNOWN, devices,
                                      num_devices);
}

} // namespace ucxl
