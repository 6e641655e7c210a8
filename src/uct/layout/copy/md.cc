#include "md.h"

#include "ucs/window/window.h"
#include "uct/layout/base/component.h"
#include "uct/layout/base/md.h"
#include "uct/layout/base/not_supported.h"

#include <array>
#include <atomic>
#include <new>

namespace ucxl
{

namespace
{

// Every registration returns the address of this byte. UCP reads null as "not registered".
char registered;

thread_local std::uint64_t num_registrations = 0;
thread_local const void* last_registering_md = nullptr;

std::array<std::atomic<md_close_callback>, max_md_close_callbacks> close_callbacks{};

struct layout_md {
    uct_md super;
    std::atomic<bool> has_interface;
};

layout_md& self_of(uct_md_h md)
{
    return *reinterpret_cast<layout_md*>(md);
}

// ucp_init opens the domain of every component, and closes it at once if UCX_TLS allows none of its transports.
struct last_domain {
    const void* opened = nullptr;
    bool left_out      = false;
};

thread_local last_domain last;

void close(uct_md_h md)
{
    if (md == last.opened) {
        last.left_out = !self_of(md).has_interface.load(std::memory_order_relaxed);
    }
    for (const auto& place : close_callbacks) {
        if (const md_close_callback callback = place.load(); callback != nullptr) {
            callback(md);
        }
    }
    delete &self_of(md);
}

ucs_status_t query(uct_md_h, abi::md_attr_v2* attr)
{
    uct_md_base_md_query(attr);
    // No NEED_RKEY, so that UCP registers nothing when it stages a window through lay_copy.
    attr->flags            = UCT_MD_FLAG_REG;
    attr->reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    attr->detect_mem_types = UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    return UCS_OK;
}

ucs_status_t mem_reg(uct_md_h md, void*, std::size_t, const abi::mem_reg_params*, uct_mem_h* memh)
{
    ++num_registrations;
    last_registering_md = md;
    *memh               = &registered;
    return UCS_OK;
}

ucs_status_t mkey_pack(uct_md_h, uct_mem_h, void*, std::size_t, const abi::mkey_pack_params*, void*)
{
    return UCS_OK;
}

ucs_status_t detect_memory_type(uct_md_h, const void* address, std::size_t, ucs_memory_type_t* type)
{
    if (!window_registry::instance().touches_arena(address, 1)) {
        return UCS_ERR_INVALID_ADDR;
    }
    *type = UCS_MEMORY_TYPE_RDMA;
    return UCS_OK;
}

ucs_status_t mem_query(uct_md_h md, const void* address, std::size_t length, uct_md_mem_attr_t* attr)
{
    ucs_memory_type_t type;
    if (const auto status = detect_memory_type(md, address, length, &type); status != UCS_OK) {
        return status;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = type;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_SYS_DEV) {
        attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS) {
        attr->base_address = const_cast<void*>(address);
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH) {
        attr->alloc_length = length;
    }
    if (attr->field_mask & (UCT_MD_MEM_ATTR_FIELD_DMABUF_FD)) {
        attr->dmabuf_fd = UCT_DMABUF_FD_INVALID;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET) {
        attr->dmabuf_offset = 0;
    }
    return UCS_OK;
}

uct_md_ops md_ops = {
    .close              = close,
    .query              = query,
    .mem_alloc          = not_supported,
    .mem_free           = not_supported,
    .mem_advise         = not_supported,
    .mem_reg            = mem_reg,
    .mem_dereg          = base_md_mem_dereg,
    .mem_query          = mem_query,
    .mkey_pack          = mkey_pack,
    .mem_attach         = not_supported,
    .detect_memory_type = detect_memory_type,
};

ucs_status_t md_open(uct_component* component, const char*, const uct_md_config_t*, uct_md_h* md)
{
    auto* const created = new (std::nothrow) layout_md{{&md_ops, component}, false};
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    last = {created, false};
    *md  = &created->super;
    return UCS_OK;
}

ucs_status_t rkey_release(uct_component*, uct_rkey_t, void*)
{
    return UCS_OK;
}

} // namespace

void note_interface(uct_md_h md)
{
    self_of(md).has_interface.store(true, std::memory_order_relaxed);
}

bool is_lay_copy_left_out()
{
    return last.left_out;
}

constinit uct_component layout_component = make_component(
    layout_component,
    {.name         = "layout",
     .md_open      = md_open,
     .rkey_unpack  = uct_md_stub_rkey_unpack,
     .rkey_release = rkey_release,
     .md_config    = config_entry("layout memory domain", "LAYOUT_", base_md_config_table, base_md_config_size)});

std::uint64_t md_observer::registrations()
{
    return num_registrations;
}

const void* md_observer::last_md()
{
    return last_registering_md;
}

bool on_md_close(md_close_callback callback)
{
    for (auto& place : close_callbacks) {
        md_close_callback expected = nullptr;
        if (place.compare_exchange_strong(expected, callback)) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl
