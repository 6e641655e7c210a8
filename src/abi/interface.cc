#include "interface.h"

#include "refuse.h"
#include "uct_forms.h"
#include "ucx.h"
#include "window_types.h"

#include <array>
#include <new>
#include <optional>

namespace ucxl::abi
{

namespace
{

const interface& self_of(uct_iface_h iface)
{
    return *reinterpret_cast<const interface*>(iface);
}

// Nothing of ours serves other memory than windows and host memory. The number of an unknown type differs between
// releases, and may be that of a known type in another one.
std::optional<ucs_memory_type_t> type_in(ucs_memory_type_t told)
{
    if (static_cast<unsigned>(told) == attached()->num_memory_types) {
        return UCS_MEMORY_TYPE_UNKNOWN;
    }
    return told == UCS_MEMORY_TYPE_HOST || types_of_windows().serves(told) ? std::optional(told) : std::nullopt;
}

// Nothing if the question is about memory that nothing of ours serves.
template <typename Attr>
std::optional<perf_question> question_in(const Attr& attr)
{
    // UCX leaves the other fields as they were, with what is no value of their type.
    const auto told = [&](std::uint64_t field, const ucs_memory_type_t& type) {
        return (attr.field_mask & field) != 0 ? type_in(type) : UCS_MEMORY_TYPE_UNKNOWN;
    };
    const auto local  = told(has_local_memory_type, attr.local_memory_type);
    const auto remote = told(has_remote_memory_type, attr.remote_memory_type);
    if (!local || !remote) {
        return std::nullopt;
    }
    return perf_question{(attr.field_mask & has_operation) != 0 ? attr.operation : ep_operation::last, *local, *remote};
}

template <typename Attr>
void set(Attr& attr, const perf_answer& answer)
{
    const auto wants = [&](std::uint64_t field) { return (attr.field_mask & field) != 0; };
    const uct_ppn_bandwidth_t bandwidth{.dedicated = 0, .shared = answer.bandwidth};
    if (wants(has_send_pre_overhead)) {
        attr.send_pre_overhead = answer.overhead;
    }
    if (wants(has_send_post_overhead)) {
        attr.send_post_overhead = 0;
    }
    if (wants(has_recv_overhead)) {
        attr.recv_overhead = 0; // UCP asserts this value
    }
    if (wants(has_bandwidth)) {
        attr.bandwidth = bandwidth;
    }
    if constexpr (requires { Attr::has_path_bandwidth; }) {
        if (wants(Attr::has_path_bandwidth)) {
            attr.path_bandwidth = bandwidth;
        }
    }
    if (wants(Attr::has_latency)) {
        attr.latency = ucs_linear_func_t{.c = answer.latency, .m = 0};
    }
    if (wants(Attr::has_max_inflight_eps)) {
        attr.max_inflight_eps = SIZE_MAX;
    }
    if constexpr (requires { Attr::has_flags; }) {
        if (wants(Attr::has_flags)) {
            attr.flags = 0;
        }
    }
}

template <typename Attr>
ucs_status_t estimate_perf(uct_iface_h iface, Attr* attr)
{
    const auto question = question_in(*attr);
    if (!question) {
        return UCS_ERR_UNSUPPORTED;
    }
    const interface& self = self_of(iface);
    perf_answer answer{};
    const auto status = self.operations->estimate(self, *question, answer);
    if (status == UCS_OK) {
        set(*attr, answer);
    }
    return status;
}

void vfs_refresh(uct_iface_h)
{
}

int is_reachable(uct_iface_h iface, const is_reachable_params* params)
{
    const bool has_address =
        (params->field_mask & is_reachable_params::has_iface_addr) != 0 && params->iface_addr != nullptr;
    const interface& self = self_of(iface);
    return has_address && self.operations->reaches(self, params->iface_addr);
}

const void* estimate_function(perf_attr_variant variant)
{
    switch (variant) {
    case perf_attr_variant::v1_16:
        return reinterpret_cast<const void*>(estimate_perf<perf_attr_1_16>);
    case perf_attr_variant::v1_17:
        return reinterpret_cast<const void*>(estimate_perf<perf_attr_1_17>);
    case perf_attr_variant::v1_19:
        return reinterpret_cast<const void*>(estimate_perf<perf_attr_1_19>);
    }
    return nullptr;
}

const void* function_for(internal_op op)
{
    switch (op) {
    case internal_op::iface_estimate_perf:
        return estimate_function(attached()->perf_attr);
    case internal_op::iface_vfs_refresh:
        return reinterpret_cast<const void*>(vfs_refresh);
    case internal_op::iface_is_reachable_v2:
        return reinterpret_cast<const void*>(is_reachable);
    case internal_op::ep_is_connected:
        return find_symbol("uct_base_ep_is_connected");
    case internal_op::iface_query_v2:
        return find_symbol("uct_iface_base_query_v2");
    case internal_op::iface_mem_element_pack:
    case internal_op::ep_query:
    case internal_op::ep_invalidate:
    case internal_op::ep_connect_to_ep_v2:
    case internal_op::ep_get_device_ep:
    case internal_op::ep_put_sgl_zcopy:
    case internal_op::ep_get_sgl_zcopy:
    case internal_op::ep_outstanding_purge:
        break;
    }
    return reinterpret_cast<const void*>(refuse<>);
}

using internal_table = std::array<const void*, max_internal_ops>;

internal_table make_internal_table()
{
    internal_table table{};
    std::size_t place = 0;
    for (const auto op : internal_ops_of(attached()->internal_ops)) {
        table[place++] = function_for(op);
    }
    return table;
}

ucs_class_t* iface_class()
{
    static ucs_class_t* const found = find_object<ucs_class_t>("uct_base_iface_t_class");
    return found;
}

ucs_class_t* ep_class()
{
    static ucs_class_t* const found = find_object<ucs_class_t>("uct_base_ep_t_class");
    return found;
}

} // namespace

ucs_status_t open_interface(interface& interface, uct_iface_ops_t& ops, const interface_operations& operations,
                            uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                            const uct_iface_config_t* config)
{
    static const internal_table internal_ops = make_internal_table();
    interface.operations                     = &operations;
    int init_count                           = 1;
    const auto status = uct_base_iface_t_init(&interface.super, iface_class(), &init_count, &ops, internal_ops.data(),
                                              md, worker, params, config);
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(iface_class(), &interface.super, init_count);
    }
    return status;
}

namespace
{

template <typename Function>
void set(Function& place, const char* name)
{
    place = find_function<Function>(name);
}

} // namespace

void stock_interface_ops(uct_iface_ops_t& ops)
{
    set(ops.iface_flush, "uct_base_iface_flush");
    set(ops.iface_fence, "uct_base_iface_fence");
    set(ops.iface_is_reachable, "uct_base_iface_is_reachable");
    set(ops.ep_flush, "uct_base_ep_flush");
    set(ops.ep_fence, "uct_base_ep_fence");
}

namespace
{

constexpr unsigned all_progress = UCT_PROGRESS_SEND | UCT_PROGRESS_RECV;

} // namespace

void enable_progress(uct_iface_h iface)
{
    static const auto stock = find_function<void (*)(uct_iface_h, unsigned)>("uct_base_iface_progress_enable");
    stock(iface, all_progress);
}

void disable_progress(uct_iface_h iface)
{
    static const auto stock = find_function<void (*)(uct_iface_h, unsigned)>("uct_base_iface_progress_disable");
    stock(iface, all_progress);
}

void close_interface(interface& interface)
{
    ucs_class_call_cleanup_chain(iface_class(), &interface.super, -1);
}

void query_interface(interface& interface, uct_iface_attr_t& attr)
{
    uct_base_iface_query(&interface.super, &attr);
    if (attached()->has_memory_flags) {
        reinterpret_cast<ucs_sys_device_t*>(&attr)[ctl_device_offset] = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
}

ucs_status_t create_endpoint(const uct_ep_params_t* params, uct_ep_h* ep)
{
    auto* const created = new (std::nothrow) base_ep{};
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    int init_count = 1;
    const auto status =
        uct_base_ep_t_init(created, ep_class(), &init_count, reinterpret_cast<base_iface*>(params->iface));
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(ep_class(), created, init_count);
        delete created;
        return status;
    }
    *ep = &created->super;
    return UCS_OK;
}

void destroy_endpoint(uct_ep_h ep)
{
    auto* const destroyed = reinterpret_cast<base_ep*>(ep);
    ucs_class_call_cleanup_chain(ep_class(), destroyed, -1);
    delete destroyed;
}

} // namespace ucxl::abi
