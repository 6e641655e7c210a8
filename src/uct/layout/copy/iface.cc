#include "lay_copy.h"

#include "md.h"
#include "uct/layout/base/iface.h"
#include "uct/layout/base/window_copy.h"

#include "abi/log.h"
#include "abi/window_types.h"

#include <climits>
#include <cstring>
#include <new>

#include <sys/random.h>

namespace ucxl
{

namespace
{

struct lay_copy_config {
    uct_iface_config super;
    double short_bandwidth; // bytes per second
    double zcopy_bandwidth;
    double direct_bandwidth;
    double overhead; // seconds
    double latency;
};

// UCP reads SHORT when it plans an eager protocol and ZCOPY when it plans a rendezvous pipeline. Eager is faster for
// windows at every size, because the FIFO stays in cache and pipeline fragments do not. The gap between the two prices
// tells UCP so.
constexpr abi::option config_table[] = {
    {"", "", nullptr, offsetof(lay_copy_config, super), abi::option_type::iface_options},
    {"SHORT_BW", "30GBs", "Bandwidth of short operations as reported to UCP, which plans eager protocols with it",
     offsetof(lay_copy_config, short_bandwidth), abi::option_type::bandwidth},
    {"ZCOPY_BW", "3GBs",
     "Bandwidth of zero-copy operations as reported to UCP, which plans rendezvous pipelines with it",
     offsetof(lay_copy_config, zcopy_bandwidth), abi::option_type::bandwidth},
    {"DIRECT_BW", "4GBs",
     "Bandwidth of short operations as reported to UCP for windows that a peer of this host can copy in one pass. The\n"
     "less it is, the shorter are the messages that UCP sends in this way",
     offsetof(lay_copy_config, direct_bandwidth), abi::option_type::bandwidth},
    {"OVERHEAD", "50ns", "CPU time to start an operation as reported to UCP", offsetof(lay_copy_config, overhead),
     abi::option_type::price},
    {"LATENCY", "50ns", "Latency of an operation as reported to UCP", offsetof(lay_copy_config, latency),
     abi::option_type::price}};

struct lay_copy_iface {
    base_interface base;
    std::uint64_t id; // identifies this interface, which reaches only itself
    double short_bandwidth;
    double zcopy_bandwidth;
    double direct_bandwidth;
};

lay_copy_iface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<lay_copy_iface*>(iface);
}

ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr)
{
    lay_copy_iface& self = self_of(iface);
    query_base_interface(self.base, sizeof(self.id), self.short_bandwidth, *attr);
    attr->cap.get.max_short = UINT_MAX;
    attr->cap.flags         = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_GET_SHORT |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY | UCT_IFACE_FLAG_PENDING;
    return UCS_OK;
}

bool is_type_of_direct_windows(ucs_memory_type_t type)
{
    return abi::types_of_windows().direct == type;
}

bool is_zcopy(abi::ep_operation operation)
{
    return operation == abi::ep_operation::put_zcopy || operation == abi::ep_operation::get_zcopy;
}

ucs_status_t estimate(const abi::interface& interface, const abi::perf_question& question, abi::perf_answer& answer)
{
    // It could copy between host memory and host memory, but must not displace the transports that are for that.
    if (question.local == UCS_MEMORY_TYPE_HOST && question.remote == UCS_MEMORY_TYPE_HOST) {
        return UCS_ERR_UNSUPPORTED;
    }
    const auto& self = reinterpret_cast<const lay_copy_iface&>(interface);
    // With the prices of direct windows, UCP is to leave eager protocols, not to enter pipelines.
    const bool is_direct  = is_type_of_direct_windows(question.local) || is_type_of_direct_windows(question.remote);
    const double slowdown = is_direct ? self.short_bandwidth / self.direct_bandwidth : 1;
    answer = {.bandwidth = (is_zcopy(question.operation) ? self.zcopy_bandwidth : self.short_bandwidth) / slowdown,
              .overhead  = self.base.overhead,
              .latency   = self.base.latency};
    return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* address)
{
    std::memcpy(address, &self_of(iface).id, sizeof(std::uint64_t));
    return UCS_OK;
}

bool reaches(const abi::interface& interface, const uct_iface_addr_t* address)
{
    const auto& self = reinterpret_cast<const lay_copy_iface&>(interface);
    return std::memcmp(address, &self.id, sizeof(self.id)) == 0;
}

constexpr abi::interface_operations operations = {.estimate = estimate, .reaches = reaches};

void iface_close(uct_iface_h iface)
{
    lay_copy_iface* self = &self_of(iface);
    note_interface_close(self->base.super.super.md);
    close_base_interface(self->base);
    delete self;
}

ucs_status_t report(failure_kind kind, const refused_range& refused, bool silent)
{
    report_failure(
        {kind, "lay_copy", reinterpret_cast<std::uintptr_t>(refused.address), refused.length, refused.reason, silent});
    return UCS_ERR_INVALID_ADDR;
}

// A refused read must not leave the old contents of a buffer to its receiver.
void clear(void* target, std::size_t length)
{
    if (length > 0 && is_plain(target, length)) {
        std::memset(target, 0, length);
    }
}

// UCP stages fragments with the short operations and ends the process (ucs_fatal) if one fails. A window that is gone
// must not end the process, least of all because of a peer. So these operations drop the bytes to write, read zeros,
// and succeed.
[[gnu::noinline]] ucs_status_t put_any(const void* buffer, std::size_t length, void* target)
{
    if (const auto refused = move_window(target, buffer, length, target)) {
        report(failure_kind::write, *refused, true);
    }
    return UCS_OK;
}

[[gnu::noinline]] ucs_status_t get_any(void* buffer, std::size_t length, const void* source)
{
    if (const auto refused = move_window(buffer, source, length, source)) {
        clear(buffer, length);
        report(failure_kind::read, *refused, true);
    }
    return UCS_OK;
}

ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    auto* const target = reinterpret_cast<void*>(remote);
    return write_row(target, buffer, length) ? UCS_OK : put_any(buffer, length, target);
}

ucs_status_t get_short(uct_ep_h, void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    const auto* const source = reinterpret_cast<const void*>(remote);
    return read_row(buffer, source, length) ? UCS_OK : get_any(buffer, length, source);
}

// The pipelines that use the zero-copy operations ignore what these return: rndv_put.c and rndv_get.c check no status
// of a copy. UCP also uses them between any memory of one worker.
ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (const auto refused = move_range(reinterpret_cast<void*>(remote), iov[i].buffer, iov[i].length)) {
            return report(failure_kind::write, *refused, true);
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (const auto refused = move_range(iov[i].buffer, reinterpret_cast<const void*>(remote), iov[i].length)) {
            clear(iov[i].buffer, iov[i].length);
            return report(failure_kind::read, *refused, true);
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    base_endpoint_ops(ops);
    ops.ep_put_short = put_short;
    ops.ep_get_short = get_short;
    ops.ep_put_zcopy = put_zcopy;
    ops.ep_get_zcopy = get_zcopy;
    base_interface_ops(ops);
    ops.iface_close       = iface_close;
    ops.iface_query       = iface_query;
    ops.iface_get_address = get_address;
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
    self->short_bandwidth  = config.short_bandwidth;
    self->zcopy_bandwidth  = config.zcopy_bandwidth;
    self->direct_bandwidth = config.direct_bandwidth;
    self->base.overhead    = config.overhead;
    self->base.latency     = config.latency;
    if (getrandom(&self->id, sizeof(self->id), 0) != sizeof(self->id)) {
        ucs_error("lay_copy: getrandom failed: %m");
        delete self;
        return UCS_ERR_IO_ERROR;
    }
    static uct_iface_ops_t iface_ops = make_ops();
    const auto status =
        open_base_interface(self->base, "lay_copy", iface_ops, operations, md, worker, params, tl_config);
    if (status != UCS_OK) {
        delete self;
        return status;
    }
    note_interface(md);
    *iface = &self->base.super.super.super;
    return UCS_OK;
}

ucs_status_t query_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices)
{
    return abi::single_device(md, "layout", UCT_DEVICE_TYPE_ACC, devices, num_devices);
}

} // namespace

constinit abi::transport lay_copy_tl({
    .name          = "lay_copy",
    .query_devices = query_devices,
    .iface_open    = iface_open,
    .iface_options = {"lay_copy transport", "LAY_COPY_", config_table, sizeof(lay_copy_config)},
});

} // namespace ucxl
