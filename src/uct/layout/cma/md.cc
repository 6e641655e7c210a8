// The component and memory domain of lay_cma.
#include "lay_cma.h"

#include "abi/window_types.h"
#include "uct/layout/base/md.h"
#include "uct/layout/peer/export.h"
#include "uct/layout/peer/rkey.h"

#include "ucs/sys/status.h"
#include "ucs/window/window.h"

#include <cstring>
#include <new>

namespace ucxl
{

namespace
{

struct lay_cma_md_config {
    std::size_t min_block; // bytes
};

// With shorter blocks, the kernel's work for each block costs more than staging the window.
constexpr abi::option config_table[] = {
    {"", "", nullptr, 0, abi::option_type::md_options},
    {"MIN_BLOCK", "16k", "Least average block length of a window that peers of this host may copy by lay_cma",
     offsetof(lay_cma_md_config, min_block), abi::option_type::memory_units}};

struct lay_cma_md {
    abi::domain super;
    std::size_t min_block;
};

// Every registration returns the address of this byte. The window is looked up when a key is packed, so a registration
// in UCP's cache never refers to a destroyed window.
char registered;

void close(uct_md_h md)
{
    delete reinterpret_cast<lay_cma_md*>(md);
}

abi::domain_attr query()
{
    const std::uint64_t windows = abi::types_of_windows().served;
    return {
        .flags            = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY,
        .reg_mem_types    = windows,
        .cache_mem_types  = windows,
        .access_mem_types = windows | UCS_BIT(UCS_MEMORY_TYPE_HOST),
        .rkey_packed_size = sizeof(shm_key),
    };
}

ucs_status_t mem_reg(uct_md_h, void* address, std::size_t length, const abi::mem_reg_params*, uct_mem_h* memh)
{
    window_registry::instance().note_registration(address, length);
    *memh = &registered;
    return UCS_OK;
}

ucs_status_t mkey_pack(uct_md_h md, uct_mem_h, void* address, std::size_t, const abi::mkey_pack_params*, void* buffer)
{
    return guarded("lay_cma", [&] {
        const shm_key key = export_process_window(address, reinterpret_cast<const lay_cma_md*>(md)->min_block);
        std::memcpy(buffer, &key, sizeof(key));
        return UCS_OK;
    });
}

ucs_status_t rkey_unpack(uct_component*, const void* buffer, uct_rkey_t* rkey, void** handle)
{
    return unpack_shm_key("lay_cma", shm_access::process, buffer, rkey, handle);
}

constexpr abi::domain_operations operations = {
    .close     = close,
    .query     = query,
    .mem_reg   = mem_reg,
    .mem_dereg = base_md_mem_dereg,
    .mkey_pack = mkey_pack,
};

ucs_status_t md_open(uct_component* component, const char*, const uct_md_config_t* config, uct_md_h* md)
{
    const auto& options = *reinterpret_cast<const lay_cma_md_config*>(config);
    auto* created       = new (std::nothrow) lay_cma_md{{}, options.min_block};
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    init_domain(created->super, operations, component);
    *md = &created->super.super;
    return UCS_OK;
}

} // namespace

constinit abi::component lay_cma_component({
    .name         = "lay_cma",
    .md_open      = md_open,
    .rkey_unpack  = rkey_unpack,
    .rkey_release = release_shm_key,
    .md_options   = {"lay_cma memory domain", "LAY_CMA_", config_table, sizeof(lay_cma_md_config)},
});

} // namespace ucxl
