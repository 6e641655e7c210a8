// The private interface between libuct and a component. UCX's own components get it from headers that are not
// installed. Only declarations: field order and sizes are facts about the binaries, and forms.cc asserts them.
//
// Structures here are the same in all releases that form.h knows, or the newest form where an older one is a shorter
// beginning of it. Structures with several forms are in uct_forms.h.
//
// Types that the installed headers declare keep their names; the others live in ucxl::abi.
#pragma once

#include <uct/api/uct.h>

#include <ucs/config/types.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/class.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>

struct ibv_context;
struct ibv_pd;

extern "C" {
#include <ucs/config/parser.h>
}

namespace ucxl::abi
{

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

struct mem_dereg_params {
    enum field : std::uint64_t { has_memh = 1u << 0, has_flags = 1u << 1, has_completion = 1u << 2 };
    enum flag : unsigned { invalidate = 1u << 0 };

    std::uint64_t field_mask;
    unsigned flags;
    uct_mem_h memh;
    uct_completion_t* comp;
};

// The second form of uct_md_mem_attr (from 1.22) begins with the first.
struct mem_attr {
    enum field : std::uint64_t { has_memory_flags = 1u << 6 }; // the others are UCT_MD_MEM_ATTR_FIELD_*

    std::uint64_t field_mask;
    ucs_memory_type_t mem_type;
    ucs_sys_device_t sys_dev;
    void* base_address;
    std::size_t alloc_length;
    int dmabuf_fd;
    std::size_t dmabuf_offset;
    std::uint8_t mem_flags;
};

// From 1.22: memory that a domain can register.
inline constexpr std::uint8_t memory_is_registrable = 1u << 0;

struct mkey_pack_params {
    enum field : std::uint64_t { has_flags = 1u << 0 };
    // The key must stop working when its registration ends with mem_dereg_params::invalidate; or it is for another
    // process that uses the same device.
    enum flag : unsigned { invalidate_rma = 1u << 0, invalidate_amo = 1u << 1, exported = 1u << 2 };

    std::uint64_t field_mask;
    unsigned flags;
};

// Nobody here reads these parameters.
struct mem_reg_params;
struct rkey_compare_params;
struct rkey_unpack_params;

// Releases before 1.19 end after `flags`.
struct mem_attach_params {
    enum field : std::uint64_t { has_flags = 1u << 0, has_mkey_size = 1u << 1 };

    std::uint64_t field_mask;
    std::uint64_t flags;
    std::size_t mkey_size;
};

// Releases before 1.18 end after `scope`.
struct is_reachable_params {
    enum field : std::uint64_t { has_device_addr = 1u << 0, has_iface_addr = 1u << 1 };

    std::uint64_t field_mask;
    const uct_device_addr_t* device_addr;
    const uct_iface_addr_t* iface_addr;
    char* info_string;
    std::size_t info_string_length;
    int scope;
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
    const void* const* internal_ops; // slots by release, see uct_forms.h
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

// Two operations have other arguments in older releases: mem_alloc (see domain.cc), and mem_query (shorter). Releases
// before 1.21 end after detect_memory_type, those before 1.22.1 after mem_elem_pack.
struct uct_md_ops {
    void (*close)(uct_md_h md);
    ucs_status_t (*query)(uct_md_h md, void* attr);
    void (*mem_alloc)();
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
    ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length, unsigned advice);
    ucs_status_t (*mem_reg)(uct_md_h md, void* address, std::size_t length, const ucxl::abi::mem_reg_params* params,
                            uct_mem_h* memh);
    ucs_status_t (*mem_dereg)(uct_md_h md, const ucxl::abi::mem_dereg_params* params);
    ucs_status_t (*mem_query)(uct_md_h md, const void* address, std::size_t length, ucxl::abi::mem_attr* attr);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length,
                              const ucxl::abi::mkey_pack_params* params, void* buffer);
    ucs_status_t (*mem_attach)(uct_md_h md, const void* mkey, ucxl::abi::mem_attach_params* params, uct_mem_h* memh);
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void* address, std::size_t length, ucs_memory_type_t* type);
    ucs_status_t (*mem_elem_pack)(uct_md_h md, uct_mem_h memh, uct_rkey_t rkey, void* element, void** release_handle);
    void (*mem_elem_release)(uct_md_h md, void* release_handle);
};

struct uct_md {
    const uct_md_ops* ops;
    uct_component* component;
};

namespace ucxl::abi
{

// How the domains of the component "ib" begin.
struct ib_domain {
    uct_md super;
    ibv_pd* pd;
    ibv_context* context;
};

// How their memory handles begin (uct_ib_mem_t of UCX 1.16 to 1.23).
struct ib_memory {
    std::uint32_t lkey;
    std::uint32_t rkey;
    std::uint32_t flags;

    static constexpr std::uint32_t paged_on_demand = 1 << 0;
    static constexpr std::uint32_t of_all_memory   = 1 << 5; // one registration of all addresses, from 1.18
};

} // namespace ucxl::abi

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
    void (*rkey_unpack)(); // by release, see component.cc
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
ucs_status_t uct_base_iface_t_init(ucxl::abi::base_iface* self, ucs_class_t* self_class, int* init_count,
                                   uct_iface_ops_t* ops, const void* const* internal_ops, uct_md_h md,
                                   uct_worker_h worker, const uct_iface_params_t* params,
                                   const uct_iface_config_t* config);
ucs_status_t uct_base_ep_t_init(ucxl::abi::base_ep* self, ucs_class_t* self_class, int* init_count,
                                ucxl::abi::base_iface* iface);

void uct_component_register(uct_component* component);
void uct_tl_register(uct_component* component, ucxl::abi::tl* tl);

ucs_status_t uct_single_device_resource(uct_md_h md, const char* name, uct_device_type_t type,
                                        ucs_sys_device_t sys_device, ucxl::abi::tl_device_resource** devices,
                                        unsigned* num_devices);

void uct_base_iface_query(ucxl::abi::base_iface* iface, uct_iface_attr_t* attr);
}
