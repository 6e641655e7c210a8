// The private interface of UCX 1.18 between libuct and a component. UCX's own components get it from headers that are
// not installed. Only declarations: field order and sizes are facts about the binary. uct_abi_1_18.cc asserts the
// sizes, and abi_check.h checks the version at run time.
//
// Types that the installed headers declare keep their names; the others live in ucxl::abi.
#pragma once

#include <uct/api/uct.h>

#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/class.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>

namespace ucxl::abi
{

inline constexpr unsigned ucx_major = 1;
inline constexpr unsigned ucx_minor = 18;

// The operations that estimate_perf knows.
enum class ep_operation : int {
    am_short,
    am_bcopy,
    am_zcopy,
    put_short,
    put_bcopy,
    put_zcopy,
    get_short,
    get_bcopy,
    get_zcopy,
    eager_short,
    eager_bcopy,
    eager_zcopy,
    rndv_zcopy,
    atomic_post,
    atomic_fetch,
    last,
};

struct perf_attr {
    enum field : std::uint64_t {
        has_operation          = 1u << 0,
        has_local_memory_type  = 1u << 1,
        has_remote_memory_type = 1u << 2,
        has_local_sys_device   = 1u << 3,
        has_remote_sys_device  = 1u << 4,
        has_send_pre_overhead  = 1u << 5,
        has_send_post_overhead = 1u << 6,
        has_recv_overhead      = 1u << 7,
        has_bandwidth          = 1u << 8,
        has_latency            = 1u << 9,
        has_max_inflight_eps   = 1u << 10,
        has_flags              = 1u << 11,
    };

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
    std::uint64_t flags;
};

struct md_attr_v2 {
    std::uint64_t field_mask;
    std::uint64_t max_alloc;
    std::size_t max_reg;
    std::uint64_t flags;         // UCT_MD_FLAG_*
    std::uint64_t reg_mem_types; // this and the next seven are masks of UCS_BIT(ucs_memory_type_t)
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

struct mem_reg_params {
    std::uint64_t field_mask;
    std::uint64_t flags;
    int dmabuf_fd;
    std::size_t dmabuf_offset;
};

struct mem_dereg_params {
    enum field : std::uint64_t { has_memh = 1u << 0, has_flags = 1u << 1, has_completion = 1u << 2 };
    enum flag : unsigned { invalidate = 1u << 0 };

    std::uint64_t field_mask;
    unsigned flags;
    uct_mem_h memh;
    uct_completion_t* comp;
};

struct mkey_pack_params {
    std::uint64_t field_mask;
    unsigned flags;
};

struct mem_attach_params {
    std::uint64_t field_mask;
    std::uint64_t flags;
};

struct rkey_compare_params {
    std::uint64_t field_mask;
};

struct is_reachable_params {
    enum field : std::uint64_t {
        has_device_addr        = 1u << 0,
        has_iface_addr         = 1u << 1,
        has_info_string        = 1u << 2,
        has_info_string_length = 1u << 3,
        has_scope              = 1u << 4,
        has_device_addr_length = 1u << 5,
        has_iface_addr_length  = 1u << 6,
    };
    enum class reach : int { device, network };

    std::uint64_t field_mask;
    const uct_device_addr_t* device_addr;
    const uct_iface_addr_t* iface_addr;
    char* info_string;
    std::size_t info_string_length;
    reach scope;
    std::size_t device_addr_length;
    std::size_t iface_addr_length;
};

struct ep_is_connected_params {
    std::uint64_t field_mask;
    const uct_device_addr_t* device_addr;
    const uct_iface_addr_t* iface_addr;
    const uct_ep_addr_t* ep_addr;
};

struct ep_connect_to_ep_params {
    std::uint64_t field_mask;
    std::size_t device_addr_length;
    std::size_t ep_addr_length;
};

struct iface_internal_ops {
    ucs_status_t (*iface_estimate_perf)(uct_iface_h iface, perf_attr* attr);
    void (*iface_vfs_refresh)(uct_iface_h iface);
    ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t* attr);
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
    ucs_status_t (*ep_connect_to_ep_v2)(uct_ep_h ep, const uct_device_addr_t* device, const uct_ep_addr_t* address,
                                        const ep_connect_to_ep_params* params);
    int (*iface_is_reachable_v2)(uct_iface_h iface, const is_reachable_params* params);
    int (*ep_is_connected)(uct_ep_h ep, const ep_is_connected_params* params);
};

struct am_handler {
    uct_am_callback_t cb;
    void* arg;
    std::uint32_t flags;
};

struct worker_progress {
    uct_worker_cb_id_t id;
    std::uint32_t refcount;
};

// Every interface begins with this.
struct base_iface {
    uct_iface_t super;
    iface_internal_ops* internal_ops;
    uct_md_h md;
    void* worker; // private worker
    am_handler am[UCT_AM_ID_MAX];
    uct_am_tracer_t am_tracer;
    void* am_tracer_arg;
    uct_error_handler_t err_handler;
    void* err_handler_arg;
    std::uint32_t err_handler_flags;
    worker_progress prog;
    unsigned progress_flags;
    struct {
        unsigned num_alloc_methods;
        uct_alloc_method_t alloc_methods[UCT_ALLOC_METHOD_LAST];
        ucs_log_level_t failure_level;
        std::size_t max_num_eps;
    } config;
};

// Every endpoint begins with this.
struct base_ep {
    uct_ep_t super;
};

struct tl_device_resource {
    char name[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
    ucs_sys_device_t sys_device;
};

struct tl {
    char name[UCT_TL_NAME_MAX];
    ucs_status_t (*query_devices)(uct_md_h md, tl_device_resource** devices, unsigned* num_devices);
    ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                               const uct_iface_config_t* config, uct_iface_h* iface);
    ucs_config_global_list_entry_t config;
    ucs_list_link_t list;
};

} // namespace ucxl::abi

struct uct_md_ops {
    void (*close)(uct_md_h md);
    ucs_status_t (*query)(uct_md_h md, ucxl::abi::md_attr_v2* attr);
    ucs_status_t (*mem_alloc)(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type, unsigned flags,
                              const char* name, uct_mem_h* memh);
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
    ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length, unsigned advice);
    ucs_status_t (*mem_reg)(uct_md_h md, void* address, std::size_t length, const ucxl::abi::mem_reg_params* params,
                            uct_mem_h* memh);
    ucs_status_t (*mem_dereg)(uct_md_h md, const ucxl::abi::mem_dereg_params* params);
    ucs_status_t (*mem_query)(uct_md_h md, const void* address, std::size_t length, uct_md_mem_attr_t* attr);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length,
                              const ucxl::abi::mkey_pack_params* params, void* buffer);
    ucs_status_t (*mem_attach)(uct_md_h md, const void* mkey, ucxl::abi::mem_attach_params* params, uct_mem_h* memh);
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void* address, std::size_t length, ucs_memory_type_t* type);
};

struct uct_md {
    uct_md_ops* ops;
    uct_component* component;
};

struct uct_iface_config {
    struct {
        uct_alloc_method_t* methods;
        unsigned count;
    } alloc_methods;
    int failure; // log level
    std::size_t max_num_eps;
};

struct uct_component {
    char name[UCT_COMPONENT_NAME_MAX];
    ucs_status_t (*query_md_resources)(uct_component* component, uct_md_resource_desc_t** resources, unsigned* num);
    ucs_status_t (*md_open)(uct_component* component, const char* name, const uct_md_config_t* config, uct_md_h* md);
    ucs_status_t (*cm_open)(uct_component* component, uct_worker_h worker, const uct_cm_config_t* config, uct_cm_h* cm);
    ucs_status_t (*rkey_unpack)(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle);
    ucs_status_t (*rkey_ptr)(uct_component* component, uct_rkey_t rkey, void* handle, std::uint64_t remote,
                             void** local);
    ucs_status_t (*rkey_release)(uct_component* component, uct_rkey_t rkey, void* handle);
    ucs_status_t (*rkey_compare)(uct_component* component, uct_rkey_t first, uct_rkey_t second,
                                 const ucxl::abi::rkey_compare_params* params, int* result);
    ucs_config_global_list_entry_t md_config; // its table must not be null
    ucs_config_global_list_entry_t cm_config;
    ucs_list_link_t tl_list;
    ucs_list_link_t list;
    std::uint64_t flags;              // UCT_COMPONENT_FLAG_*
    void (*md_vfs_init)(uct_md_h md); // must not be null
};

extern "C" {
extern ucs_class_t uct_base_iface_t_class;
extern ucs_class_t uct_base_ep_t_class;
extern ucs_config_field_t uct_md_config_table[];
extern ucs_config_field_t uct_iface_config_table[];

ucs_status_t uct_base_iface_t_init(ucxl::abi::base_iface* self, ucs_class_t* self_class, int* init_count,
                                   uct_iface_ops_t* ops, ucxl::abi::iface_internal_ops* internal_ops, uct_md_h md,
                                   uct_worker_h worker, const uct_iface_params_t* params,
                                   const uct_iface_config_t* config);
ucs_status_t uct_base_ep_t_init(ucxl::abi::base_ep* self, ucs_class_t* self_class, int* init_count,
                                ucxl::abi::base_iface* iface);

void uct_component_register(uct_component* component);
void uct_tl_register(uct_component* component, ucxl::abi::tl* tl);

void uct_md_base_md_query(ucxl::abi::md_attr_v2* attr);
ucs_status_t uct_md_query_single_md_resource(uct_component* component, uct_md_resource_desc_t** resources,
                                             unsigned* num);
ucs_status_t uct_md_stub_rkey_unpack(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle);
ucs_status_t uct_base_rkey_compare(uct_component* component, uct_rkey_t first, uct_rkey_t second,
                                   const ucxl::abi::rkey_compare_params* params, int* result);
ucs_status_t uct_single_device_resource(uct_md_h md, const char* name, uct_device_type_t type,
                                        ucs_sys_device_t sys_device, ucxl::abi::tl_device_resource** devices,
                                        unsigned* num_devices);

void uct_base_iface_query(ucxl::abi::base_iface* iface, uct_iface_attr_t* attr);
ucs_status_t uct_base_iface_flush(uct_iface_h iface, unsigned flags, uct_completion_t* comp);
ucs_status_t uct_base_iface_fence(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);
int uct_base_iface_is_reachable(uct_iface_h iface, const uct_device_addr_t* device, const uct_iface_addr_t* address);
ucs_status_t uct_base_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
ucs_status_t uct_base_ep_fence(uct_ep_h ep, unsigned flags);
int uct_base_ep_is_connected(uct_ep_h ep, const ucxl::abi::ep_is_connected_params* params);
}
