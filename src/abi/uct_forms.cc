// Sizes and offsets of the private interface (LP64), as measured on the real headers of every release.
#include "uct_forms.h"

#include <array>
#include <type_traits>

namespace ucxl::abi
{

static_assert(sizeof(void*) == 8, "only LP64 was measured");

static_assert(sizeof(uct_iface_ops_t) == 400);
static_assert(sizeof(uct_iface_attr_t) == 536);
static_assert(sizeof(uct_component) == 232);
static_assert(sizeof(uct_md) == 16);
static_assert(sizeof(uct_md_ops) == 104);
static_assert(offsetof(uct_md_ops, mem_elem_pack) == 88);
static_assert(offsetof(uct_md_ops, mem_elem_release) == 96);
static_assert(offsetof(ib_domain, pd) == 16);
static_assert(offsetof(ib_domain, context) == 24);
static_assert(offsetof(ib_memory, flags) == 8 && sizeof(ib_memory) == 12);
static_assert(sizeof(mkey_pack_params) == 16);
static_assert(sizeof(md_attr_1_16) == 528);
static_assert(sizeof(md_attr_1_18) == 536);
static_assert(sizeof(md_attr_1_22) == 544);
static_assert(sizeof(perf_attr_1_16) == 88);
static_assert(sizeof(perf_attr_1_17) == 96);
static_assert(sizeof(perf_attr_1_19) == 112);
static_assert(sizeof(base_iface) == 1280);
static_assert(sizeof(base_ep) == 8);
static_assert(sizeof(uct_iface_config) == 32);
static_assert(sizeof(tl) == 104);
static_assert(sizeof(tl_device_resource) == 40);
static_assert(sizeof(mem_dereg_params) == 32);
static_assert(sizeof(mem_attr) == 56);
static_assert(sizeof(memory_info_1_22) == 32);
static_assert(sizeof(config_field_1_16) == 80);
static_assert(sizeof(config_field_1_17) == 88);
static_assert(sizeof(ucs_config_global_list_entry_t) == 56);
static_assert(sizeof(ucs_class_t) == 40);
static_assert(offsetof(base_iface, md) == 408);
static_assert(offsetof(base_iface, worker) == 416);
static_assert(offsetof(base_iface, am) == 424);
static_assert(offsetof(base_iface, am_tracer) == 1192);
static_assert(offsetof(base_iface, err_handler) == 1208);
static_assert(offsetof(base_iface, prog) == 1228);
static_assert(offsetof(base_iface, progress_flags) == 1236);
static_assert(offsetof(base_iface, config) == 1240);
static_assert(offsetof(base_iface, config.max_num_eps) == 1272);
static_assert(offsetof(uct_component, md_open) == 24);
static_assert(offsetof(uct_component, rkey_unpack) == 40);
static_assert(offsetof(uct_component, md_config) == 72);
static_assert(offsetof(uct_component, cm_config) == 128);
static_assert(offsetof(uct_component, tl_list) == 184);
static_assert(offsetof(uct_component, list) == 200);
static_assert(offsetof(uct_component, flags) == 216);
static_assert(offsetof(uct_component, md_vfs_init) == 224);
static_assert(offsetof(tl, query_devices) == 16);
static_assert(offsetof(tl, config) == 32);
static_assert(offsetof(tl, list) == 88);
static_assert(offsetof(tl_device_resource, type) == 32);
static_assert(offsetof(tl_device_resource, sys_device) == 36);
static_assert(offsetof(is_reachable_params, scope) == 40);
static_assert(offsetof(mem_dereg_params, memh) == 16);
static_assert(offsetof(mem_attr, mem_flags) == 48);
static_assert(std::is_standard_layout_v<base_iface> && std::is_standard_layout_v<base_ep>);

std::span<const internal_op> internal_ops_of(internal_ops_variant variant)
{
    using enum internal_op;
    static constexpr std::array v1_16 = {iface_estimate_perf, iface_vfs_refresh,     ep_query,       ep_invalidate,
                                         ep_connect_to_ep_v2, iface_is_reachable_v2, ep_is_connected};
    static constexpr std::array v1_20 = {
        iface_query_v2, iface_estimate_perf, iface_vfs_refresh,     iface_mem_element_pack, ep_query,
        ep_invalidate,  ep_connect_to_ep_v2, iface_is_reachable_v2, ep_is_connected,        ep_get_device_ep};
    static constexpr std::array v1_21 = {iface_estimate_perf, iface_vfs_refresh,     ep_query,        ep_invalidate,
                                         ep_connect_to_ep_v2, iface_is_reachable_v2, ep_is_connected, ep_get_device_ep};
    static constexpr std::array v1_22 = {iface_query_v2,   iface_estimate_perf, iface_vfs_refresh,     ep_query,
                                         ep_invalidate,    ep_connect_to_ep_v2, iface_is_reachable_v2, ep_is_connected,
                                         ep_get_device_ep, ep_put_sgl_zcopy};
    static constexpr std::array v1_23 = {
        iface_query_v2,   iface_estimate_perf, iface_vfs_refresh,     ep_query,
        ep_invalidate,    ep_connect_to_ep_v2, iface_is_reachable_v2, ep_is_connected,
        ep_get_device_ep, ep_put_sgl_zcopy,    ep_get_sgl_zcopy,      ep_outstanding_purge};
    static_assert(v1_23.size() == max_internal_ops);
    switch (variant) {
    case internal_ops_variant::v1_16:
        return v1_16;
    case internal_ops_variant::v1_20:
        return v1_20;
    case internal_ops_variant::v1_21:
        return v1_21;
    case internal_ops_variant::v1_22:
        return v1_22;
    case internal_ops_variant::v1_23:
        return v1_23;
    }
    return {};
}

} // namespace ucxl::abi
