#include "memory_handles.h"

#include "sys/rollback.h"
#include "uct/layout/copy/md.h"

#include "abi/registrations.h"

#include <algorithm>
#include <type_traits>

namespace ucxl
{

namespace
{

struct unmap_memory {
    ucp_context_h context;
    void operator()(ucp_mem_h memh) const { ucp_mem_unmap(context, memh); }
};

using memh_owner = std::unique_ptr<std::remove_pointer_t<ucp_mem_h>, unmap_memory>;

// Returns null and the status if ucp_mem_map fails; UCP logs the error.
//
// The handle holds a registration of UCP's cache. When an endpoint fails, UCP completes a transfer that has sent a key
// only after nobody else holds the registration that the transfer got from the cache. So transfers must get another one
// than the handle, which stays while the window is mapped. Making that so takes longer than ucp_mem_map.
memh_owner map_memory(ucp_context_h context, const window& window, ucs_status_t& status)
{
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = window.address();
    params.length      = std::max<std::uint64_t>(window.length(), 1); // UCP has one shared handle for all empty memory
    params.memory_type = window_registry::instance().memory_type_at(window.address());
    ucp_mem_h mapped   = nullptr;
    status             = ucp_mem_map(context, &params, &mapped);
    if (status == UCS_OK) {
        abi::retire_registrations(params.address, params.length);
    }
    return memh_owner(status == UCS_OK ? mapped : nullptr, {context});
}

} // namespace

ucs_status_t memory_handles::acquire(ucp_context_h context, const context_view& view, const cached_window& window,
                                     memory_handle** handle_p)
{
    if (const auto known = _by_place.find({context, &window}); known != _by_place.end()) {
        if (known->second->users++ == 0) {
            const auto [first, last] = _unused.equal_range(&window);
            _unused.erase(std::find_if(first, last, [&](const auto& pair) { return pair.second == known->second; }));
        }
        *handle_p = known->second;
        return UCS_OK;
    }
    release_orphans(context);
    ucs_status_t status = UCS_OK;
    memh_owner memh     = map_memory(context, *window.target, status);
    if (status != UCS_OK) {
        return status;
    }
    auto owned                  = std::make_unique<memory_handle>(context, memh.get(), &window, view.copying, 1u);
    memory_handle* const handle = owned.get();
    const auto added            = _all.emplace(handle, std::move(owned)).first;
    rollback undo([&] { _all.erase(added); });
    _by_place.emplace(place{context, &window}, handle);
    undo.cancel();
    static_cast<void>(memh.release());
    *handle_p = handle;
    return UCS_OK;
}

void memory_handles::unmap(memory_handle* handle)
{
    ucp_mem_unmap(handle->context, handle->memh);
    _all.erase(handle);
}

void memory_handles::release(memory_handle* handle)
{
    if (--handle->users > 0) {
        return;
    }
    if (handle->context == nullptr) {
        _all.erase(handle);
        return;
    }
    try {
        if (has_interfaces(handle->md)) {
            _unused.emplace(handle->window, handle);
            return;
        }
    } catch (const std::bad_alloc&) {
        // Keeping it was only an optimisation.
    }
    _by_place.erase({handle->context, handle->window});
    unmap(handle);
}

void memory_handles::window_ends(const cached_window& window)
{
    while (auto unused = _unused.extract(&window)) {
        memory_handle& handle = *unused.mapped();
        _by_place.erase({handle.context, &window});
        unused.key() = handle.context;
        _orphans.insert(std::move(unused));
    }
}

void memory_handles::release_orphans(ucp_context_h context)
{
    while (const auto orphan = _orphans.extract(context)) {
        unmap(orphan.mapped());
    }
}

void memory_handles::release_unused(const void* md)
{
    std::erase_if(_by_place, [&](const auto& pair) { return pair.second->md == md && pair.second->users == 0; });
    for (auto* const kept : {&_unused, &_orphans}) {
        std::erase_if(*kept, [&](const auto& pair) {
            const bool is_meant = pair.second->md == md;
            if (is_meant) {
                unmap(pair.second);
            }
            return is_meant;
        });
    }
}

// The handles themselves are lost: UCP needs their context to release them, and that context has already dropped their
// registrations. All are in use: the workers end before their context.
void memory_handles::forget(const void* md)
{
    std::erase_if(_by_place, [&](const auto& pair) {
        memory_handle& handle = *pair.second;
        if (handle.md != md) {
            return false;
        }
        handle.context = nullptr;
        return true;
    });
}

} // namespace ucxl
