// The structures of UCX's private interface that have several forms, each named after the first release that has it.
// form.h says which one the loaded UCX uses. Only this folder includes this header.
#pragma once

#include "uct.h"

#include "form.h"

#include <span>

namespace ucxl::abi
{

// Until 1.17.
struct md_attr_1_16 {
    std::uint64_t field_mask;
    std::uint64_t max_alloc;
    std::size_t max_reg;
    std::uint64_t flags;         // UCT_MD_FLAG_*
    std::uint64_t reg_mem_types; // this and the next six are masks of UCS_BIT(ucs_memory_type_t)
    std::uint64_t reg_nonblock_mem_types;
    std::uint64_t cache_mem_types;
    std::uint64_t detect_mem_types;
    std::uint64_t alloc_mem_types;
    std::uint64_t access_mem_types;
    std::uint64_t dmabuf_mem_types;
    ucs_linear_func_t reg_cost;
    char component_name[UCT_COMPONENT_NAME_MAX];
    std::size_t rkey_packed_size;
    ucs_cpu_set_t local_cpus;
    std::size_t exported_mkey_packed_size;
    char global_id[UCT_MD_GLOBAL_ID_MAX];
    std::size_t reg_alignment;
};

// 1.18 to 1.21.
struct md_attr_1_18 {
    std::uint64_t field_mask;
    std::uint64_t max_alloc;
    std::size_t max_reg;
    std::uint64_t flags;
    std::uint64_t reg_mem_types;
    std::uint64_t reg_nonblock_mem_types;
    std::uint64_t cache_mem_types;
    std::uint64_t gva_mem_types;
    std::uint64_t detect_mem_types;
    std::uint64_t alloc_mem_types;
    std::uint64_t access_mem_types;
    std::uint64_t dmabuf_mem_types;
    ucs_linear_func_t reg_cost;
    char component_name[UCT_COMPONENT_NAME_MAX];
    std::size_t rkey_packed_size;
    ucs_cpu_set_t local_cpus;
    std::size_t exported_mkey_packed_size;
    char global_id[UCT_MD_GLOBAL_ID_MAX];
    std::size_t reg_alignment;
};

// From 1.22.
struct md_attr_1_22 {
    md_attr_1_18 before;
    std::uint8_t required_mem_flags;
};

// 1.16.
struct perf_attr_1_16 {
    enum field : std::uint64_t { has_latency = 1u << 9, has_max_inflight_eps = 1u << 10 };

    std::uint64_t field_mask;
    ep_operation operation;
    ucs_memory_type_t local_memory_type;
    ucs_memory_type_t remote_memory_type;
    ucs_sys_device_t local_sys_device;
    ucs_sys_device_t remote_sys_device;
    double send_pre_overhead; // seconds, as all times here
    double send_post_overhead;
    double recv_overhead;
    uct_ppn_bandwidth_t bandwidth; // bytes per second
    ucs_linear_func_t latency;     // by the number of endpoints
    std::size_t max_inflight_eps;
};

// 1.17 and 1.18.
struct perf_attr_1_17 {
    enum field : std::uint64_t {
        has_latency          = 1u << 9,
        has_max_inflight_eps = 1u << 10,
        has_flags            = 1u << 11,
    };

    std::uint64_t field_mask;
    ep_operation operation;
    ucs_memory_type_t local_memory_type;
    ucs_memory_type_t remote_memory_type;
    ucs_sys_device_t local_sys_device;
    ucs_sys_device_t remote_sys_device;
    double send_pre_overhead;
    double send_post_overhead;
    double recv_overhead;
    uct_ppn_bandwidth_t bandwidth;
    ucs_linear_func_t latency;
    std::size_t max_inflight_eps;
    std::uint64_t flags;
};

// From 1.19.
struct perf_attr_1_19 {
    enum field : std::uint64_t {
        has_path_bandwidth   = 1u << 9,
        has_latency          = 1u << 10,
        has_max_inflight_eps = 1u << 11,
        has_flags            = 1u << 12,
    };

    std::uint64_t field_mask;
    ep_operation operation;
    ucs_memory_type_t local_memory_type;
    ucs_memory_type_t remote_memory_type;
    ucs_sys_device_t local_sys_device;
    ucs_sys_device_t remote_sys_device;
    double send_pre_overhead;
    double send_post_overhead;
    double recv_overhead;
    uct_ppn_bandwidth_t bandwidth;
    uct_ppn_bandwidth_t path_bandwidth;
    ucs_linear_func_t latency;
    std::size_t max_inflight_eps;
    std::uint64_t flags;
};

// The bits of perf_attr::field_mask that never moved.
enum perf_field : std::uint64_t {
    has_operation          = 1u << 0,
    has_local_memory_type  = 1u << 1,
    has_remote_memory_type = 1u << 2,
    has_send_pre_overhead  = 1u << 5,
    has_send_post_overhead = 1u << 6,
    has_recv_overhead      = 1u << 7,
    has_bandwidth          = 1u << 8,
};

// The entries of uct_iface_internal_ops. Each release has some of them, in its own order.
enum class internal_op : std::uint8_t {
    iface_query_v2,
    iface_estimate_perf,
    iface_vfs_refresh,
    iface_mem_element_pack,
    ep_query,
    ep_invalidate,
    ep_connect_to_ep_v2,
    iface_is_reachable_v2,
    ep_is_connected,
    ep_get_device_ep,
    ep_put_sgl_zcopy,
    ep_get_sgl_zcopy,
    ep_outstanding_purge,
};

inline constexpr std::size_t max_internal_ops = 12;

std::span<const internal_op> internal_ops_of(internal_ops_variant variant);

// What ucs_memtype_cache_lookup() writes; before 1.22 without the flags.
struct memory_info_1_22 {
    ucs_memory_type_t type;
    ucs_sys_device_t sys_dev;
    void* base_address;
    std::size_t alloc_length;
    std::uint8_t mem_flags;
};

// From 1.22 with flags. Older functions ignore the fifth argument, which the calling conventions of x86-64 and aarch64
// pass in a register.
using memtype_cache_update = void (*)(const void* address, std::size_t length, ucs_memory_type_t type,
                                      ucs_sys_device_t sys_dev, std::uint8_t mem_flags);

struct config_functions {
    int (*read)(const char* text, void* value, const void* arg);
    int (*write)(char* text, std::size_t max, const void* value, const void* arg);
    ucs_status_t (*clone)(const void* value, void* copy, const void* arg);
    void (*release)(void* value, const void* arg);
    void (*help)(char* text, std::size_t max, const void* arg);
};

struct config_field_1_16 {
    const char* name;
    const char* default_value;
    const char* doc;
    std::size_t offset;
    config_functions parser;
    const void* arg;
};

struct config_field_1_17 {
    const char* name;
    const char* default_value;
    const char* doc;
    std::size_t offset;
    config_functions parser;
    void (*describe)();
    const void* arg;
};

// uct_iface_attr_t: the byte of the control device, from 1.22; padding before.
inline constexpr std::size_t ctl_device_offset = 532;

} // namespace ucxl::abi
