// The component and memory domain of lay_shm.
#include "lay_shm.h"

#include "abi/ucx.h"
#include "abi/window_types.h"
#include "sys/mapping.h"
#include "sys/pages.h"
#include "uct/layout/base/md.h"
#include "uct/layout/peer/export.h"
#include "uct/layout/peer/rkey.h"

#include "ucs/layout/build.h"
#include "ucs/sys/status.h"
#include "ucs/window/window.h"

#include <atomic>
#include <cstring>
#include <memory>

#include <sys/mman.h>

namespace ucxl
{

namespace
{

// The handle of mem_alloc. Memory of type RDMA is a window; host memory is plain memory of this process.
struct allocation {
    ucxl::window* window = nullptr;
    owned_mapping plain{};
};

// Every registration returns the address of this object. The window is looked up when a key is packed, so a
// registration in UCP's cache never refers to a destroyed window.
allocation registered;

std::atomic<bool (*)()> cards_have_memory{nullptr};

abi::domain_attr query()
{
    const std::uint64_t windows = abi::types_of_windows().served;
    // UCX takes the first domain that offers memory of a type, and asks for the offers at each allocation.
    const auto offered       = cards_have_memory.load();
    const std::uint64_t rdma = offered != nullptr && offered() ? 0 : UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    return {
        .flags           = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ALLOC,
        .reg_mem_types   = windows,
        .cache_mem_types = windows,
        // HOST, because UCP looks for atomics only among transports that allocate host memory.
        .alloc_mem_types  = rdma | UCS_BIT(UCS_MEMORY_TYPE_HOST),
        .access_mem_types = windows | UCS_BIT(UCS_MEMORY_TYPE_HOST),
        .max_alloc        = SIZE_MAX,
        .rkey_packed_size = sizeof(shm_key),
    };
}

result<window*> allocate_window(std::size_t length)
{
    auto layout = UCXL_TRY(make_contig(1, {.length = length}));
    auto plan   = UCXL_TRY(pack_plan::compile(layout));
    return window_registry::instance().allocate(std::move(plan));
}

ucs_status_t allocate(std::size_t length, ucs_memory_type_t type, allocation& allocation)
{
    if (type == UCS_MEMORY_TYPE_RDMA) {
        auto window = allocate_window(length);
        if (!window) {
            return log_error("lay_shm", window.error());
        }
        allocation.window = *window;
        return UCS_OK;
    }
    auto plain = owned_mapping::map(round_to_pages(length), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!plain) {
        ucs_debug("lay_shm: %s", plain.error().message.c_str());
        return UCS_ERR_NO_MEMORY;
    }
    allocation.plain = std::move(*plain);
    return UCS_OK;
}

ucs_status_t mem_alloc(uct_md_h, std::size_t* length, void** address, ucs_memory_type_t type, unsigned flags,
                       uct_mem_h* memh)
{
    // UCP asks this way, once, for host memory for its staging buffers. This domain provides none, unless UCX would log
    // that.
    if (type == UCS_MEMORY_TYPE_HOST && (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) != 0 &&
        abi::attached()->hides_alloc_errors) {
        return UCS_ERR_UNSUPPORTED;
    }
    return guarded("lay_shm", [&] {
        auto created = std::make_unique<allocation>();
        if (const auto status = allocate(*length, type, *created); status != UCS_OK) {
            return status;
        }
        *address = created->window != nullptr ? created->window->address() : created->plain.start();
        *memh    = created.release();
        return UCS_OK;
    });
}

ucs_status_t mem_free(uct_md_h, uct_mem_h memh)
{
    const std::unique_ptr<allocation> owned(static_cast<allocation*>(memh));
    window_registry::instance().destroy(owned->window);
    return UCS_OK;
}

ucs_status_t mem_reg(uct_md_h, void* address, std::size_t length, const abi::mem_reg_params*, uct_mem_h* memh)
{
    window_registry::instance().note_registration(address, length);
    *memh = &registered;
    return UCS_OK;
}

ucs_status_t mkey_pack(uct_md_h, uct_mem_h memh, void* address, std::size_t, const abi::mkey_pack_params*, void* buffer)
{
    return guarded("lay_shm", [&] {
        const auto& handle = *static_cast<const allocation*>(memh);
        const shm_key key  = handle.plain.start() != nullptr ? no_access_key() : export_window(address);
        std::memcpy(buffer, &key, sizeof(key));
        return UCS_OK;
    });
}

ucs_status_t rkey_unpack(uct_component*, const void* buffer, uct_rkey_t* rkey, void** handle)
{
    return unpack_shm_key("lay_shm", shm_access::mapping, buffer, rkey, handle);
}

constexpr abi::domain_operations operations = {
    .close     = close_base_md,
    .query     = query,
    .mem_alloc = mem_alloc,
    .mem_free  = mem_free,
    .mem_reg   = mem_reg,
    .mem_dereg = base_md_mem_dereg,
    .mkey_pack = mkey_pack,
};

ucs_status_t md_open(uct_component* component, const char*, const uct_md_config_t*, uct_md_h* md)
{
    return open_base_md(operations, component, md);
}

} // namespace

constinit abi::component lay_shm_component({
    .name         = "lay_shm",
    .md_open      = md_open,
    .rkey_unpack  = rkey_unpack,
    .rkey_release = release_shm_key,
    .md_options   = {"lay_shm memory domain", "LAY_SHM_MD_", base_md_options, base_md_options_length},
});

void leave_rdma_memory_to(bool (*others_offer_it)())
{
    cards_have_memory = others_offer_it;
}

} // namespace ucxl
