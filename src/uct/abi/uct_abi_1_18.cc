// Sizes and offsets of the private interface, measured on the real headers of UCX 1.18.1 (LP64).
#include "uct_abi_1_18.h"

#include <type_traits>

namespace ucxl::abi
{

static_assert(UCT_VERNO_MAJOR == ucx_major && UCT_VERNO_MINOR == ucx_minor, "uct_abi_1_18.h is for UCX 1.18");
static_assert(sizeof(void*) == 8, "only LP64 was measured");

static_assert(sizeof(uct_iface_ops_t) == 400);
static_assert(sizeof(uct_component) == 232);
static_assert(sizeof(uct_md) == 16);
static_assert(sizeof(uct_md_ops) == 88);
static_assert(sizeof(md_attr_v2) == 536);
static_assert(sizeof(iface_internal_ops) == 56);
static_assert(sizeof(base_iface) == 1280);
static_assert(sizeof(base_ep) == 8);
static_assert(sizeof(perf_attr) == 96);
static_assert(sizeof(uct_iface_config) == 32);
static_assert(sizeof(tl) == 104);
static_assert(sizeof(tl_device_resource) == 40);
static_assert(sizeof(is_reachable_params) == 64);
static_assert(sizeof(ep_is_connected_params) == 32);
static_assert(sizeof(mem_reg_params) == 32);
static_assert(sizeof(mem_dereg_params) == 32);
static_assert(sizeof(mkey_pack_params) == 16);
static_assert(sizeof(mem_attach_params) == 16);
static_assert(sizeof(rkey_compare_params) == 8);
static_assert(sizeof(ep_connect_to_ep_params) == 24);
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
static_assert(offsetof(uct_component, md_config) == 72);
static_assert(offsetof(uct_component, cm_config) == 128);
static_assert(offsetof(uct_component, tl_list) == 184);
static_assert(offsetof(uct_component, list) == 200);
static_assert(offsetof(uct_component, flags) == 216);
static_assert(offsetof(uct_component, md_vfs_init) == 224);
static_assert(offsetof(md_attr_v2, reg_mem_types) == 32);
static_assert(offsetof(md_attr_v2, detect_mem_types) == 64);
static_assert(offsetof(md_attr_v2, access_mem_types) == 80);
static_assert(offsetof(md_attr_v2, reg_cost) == 96);
static_assert(offsetof(md_attr_v2, component_name) == 112);
static_assert(offsetof(md_attr_v2, rkey_packed_size) == 128);
static_assert(offsetof(md_attr_v2, local_cpus) == 136);
static_assert(offsetof(md_attr_v2, global_id) == 272);
static_assert(offsetof(md_attr_v2, reg_alignment) == 528);
static_assert(offsetof(perf_attr, send_pre_overhead) == 24);
static_assert(offsetof(perf_attr, bandwidth) == 48);
static_assert(offsetof(perf_attr, latency) == 64);
static_assert(offsetof(perf_attr, flags) == 88);
static_assert(offsetof(tl, query_devices) == 16);
static_assert(offsetof(tl, config) == 32);
static_assert(offsetof(tl, list) == 88);
static_assert(offsetof(tl_device_resource, type) == 32);
static_assert(offsetof(tl_device_resource, sys_device) == 36);
static_assert(offsetof(is_reachable_params, scope) == 40);
static_assert(offsetof(uct_md_ops, mem_reg) == 40);
static_assert(offsetof(uct_md_ops, detect_memory_type) == 80);
static_assert(offsetof(iface_internal_ops, iface_is_reachable_v2) == 40);
static_assert(offsetof(mem_dereg_params, memh) == 16);
static_assert(std::is_standard_layout_v<base_iface> && std::is_standard_layout_v<base_ep>);

} // namespace ucxl::abi
