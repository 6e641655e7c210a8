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

// UCP chooses the lanes of an endpoint by this, once for all memory types. Bytes per second.
constexpr double lane_bandwidth = 20e9;

// When the last interface closes, nobody can use what is still imported.
std::atomic<unsigned> num_ifaces{0};

host_interface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<host_interface*>(iface);
}

// Only windows have keys, so only a remote window can be served.
ucs_status_t estimate(const abi::interface& interface, const abi::perf_question& question, abi::perf_answer& answer)
{
    if (question.remote == UCS_MEMORY_TYPE_HOST) {
        return UCS_ERR_UNSUPPORTED;
    }
    const auto& self = reinterpret_cast<const host_interface&>(interface);
    answer           = {.bandwidth = self.bandwidth, .overhead = self.base.overhead, .latency = self.base.latency};
    return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* address)
{
    std::memcpy(address, &self_of(iface).owner, sizeof(process_identity));
    return UCS_OK;
}

bool reaches(const abi::interface& interface, const uct_iface_addr_t* address)
{
    process_identity other;
    std::memcpy(&other, address, sizeof(other));
    const process_identity& own = reinterpret_cast<const host_interface&>(interface).owner;
    return may_share_memory(own, other) && other.pid != own.pid;
}

constexpr abi::interface_operations operations = {.estimate = estimate, .reaches = reaches};

} // namespace

void host_interface_ops(uct_iface_ops_t& ops)
{
    base_interface_ops(ops);
    ops.iface_close       = close_host_interface;
    ops.iface_query       = query_host_interface;
    ops.iface_get_address = get_address;
}

void close_host_interface(uct_iface_h iface)
{
    host_interface* self = &self_of(iface);
    close_base_interface(self->base);
    delete self;
    if (num_ifaces.fetch_sub(1) == 1) {
        drop_idle_imports();
    }
}

ucs_status_t query_host_interface(uct_iface_h iface, uct_iface_attr_t* attr)
{
    host_interface& self = self_of(iface);
    query_base_interface(self.base, sizeof(self.owner), lane_bandwidth, *attr);
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
    self->owner         = process_identity::own();
    self->bandwidth     = config.bandwidth;
    self->base.overhead = config.overhead;
    self->base.latency  = config.latency;
    const auto status =
        open_base_interface(self->base, md->component->name, ops, operations, md, worker, params, tl_config);
    if (status != UCS_OK) {
        delete self;
        return status;
    }
    ++num_ifaces;
    *iface = &self->base.super.super.super;
    return UCS_OK;
}

bool has_host_interfaces()
{
    return num_ifaces.load(std::memory_order_relaxed) != 0;
}

ucs_status_t query_host_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices)
{
    // Without /proc no memory of a peer can be reached, and without lay_copy no window of this process.
    if (process_identity::own().host == 0 || is_lay_copy_left_out()) {
        *devices     = nullptr;
        *num_devices = 0;
        return UCS_ERR_NO_DEVICE;
    }
    return abi::single_device(md, md->component->name, UCT_DEVICE_TYPE_SHM, devices, num_devices);
}

} // namespace ucxl
