#include "memory_handles.h"

#include "sys/rollback.h"
#include "uct/layout/copy/md.h"

#include "abi/component.h"
#include "abi/log.h"
#include "abi/registrations.h"
#include "abi/ucx.h"

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

// A context contains our memory domain only if UCX_TLS allows one of its transports. Without the domain UCP would take
// the window for host memory and crash.
ucs_status_t memory_handles::check_md(const char* function, ucp_context_h context, std::uint64_t registrations_before)
{
    if (md_observer::registrations() != registrations_before) {
        _md_of_context[context] = md_observer::last_md();
        return UCS_OK;
    }
    if (_md_of_context.contains(context)) {
        return UCS_OK;
    }
    ucs_error(
        "%s: the transport lay_copy is not in this UCP context. UCX_TLS (or the TLS option of the context) leaves "
        "it out: add lay_copy to the list, for example UCX_TLS=posix,cma,lay_copy",
        function);
    return UCS_ERR_NO_DEVICE;
}

ucs_status_t memory_handles::acquire(const char* function, ucp_context_h context, const cached_window& window,
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
    if (!_md_of_context.contains(context) && abi::is_foreign(context)) {
        ucs_error("%s: the context belongs to another UCX of this process than %s, with which windows work", function,
                  abi::attached_file().c_str());
        return UCS_ERR_NO_DEVICE;
    }
    release_orphans(context);
    if (!_md_of_context.contains(context)) {
        abi::retire_registrations(window.target->address(), window.target->length()); // so that UCP asks our domain
    }
    const auto registrations = md_observer::registrations();
    ucs_status_t status      = UCS_OK;
    memh_owner memh          = map_memory(context, *window.target, status);
    const bool was_asked     = md_observer::registrations() != registrations;
    // Some releases of UCX refuse memory of a type for which the context has no domain.
    if (status == UCS_OK || (status == UCS_ERR_INVALID_PARAM && !was_asked)) {
        const auto checked = check_md(function, context, registrations);
        status             = checked != UCS_OK ? checked : status;
    }
    if (status != UCS_OK) {
        return status;
    }
    auto owned = std::make_unique<memory_handle>(context, memh.get(), &window, _md_of_context.at(context), 1u);
    memory_handle* const handle = owned.get();
    const auto added            = _all.emplace(handle, std::move(owned)).first;
    rollback undo([&] { _all.erase(added); });
    _by_place.emplace(place{context, &window}, handle);
    undo.cancel();
    static_cast<void>(memh.release());
    *handle_p = handle;
    return UCS_OK;
}

// No call of UCP tells the domains of a context. But ucp_mem_map asks each of them, in this thread. The address belongs
// to no window.
// Returns false if the context was not asked.
bool memory_handles::ask_domains(ucp_context_h context)
{
    if (!window_registry::instance().reserve()) {
        return false;
    }
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = window_registry::instance().arena_base() - 1;
    params.length      = 1;
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h probe    = nullptr;
    const auto before  = md_observer::registrations();
    if (ucp_mem_map(context, &params, &probe) == UCS_OK) {
        abi::retire_registrations(params.address, params.length); // a context at the same address is asked again
        ucp_mem_unmap(context, probe);
    }
    return md_observer::registrations() != before;
}

bool memory_handles::find_key_domains(ucp_context_h context, std::vector<window_keys::domain_id>& domains)
{
    hardware_keys()->start_collecting();
    const bool was_asked = ask_domains(context);
    domains              = hardware_keys()->end_collecting();
    return was_asked;
}

bool memory_handles::has_windows(ucp_context_h context)
{
    if (_md_of_context.contains(context)) {
        return true;
    }
    if (abi::is_foreign(context)) {
        return false;
    }
    // While domains of devices are collected they take any address.
    std::vector<window_keys::domain_id> domains;
    return hardware_keys() != nullptr ? find_key_domains(context, domains) : ask_domains(context);
}

std::span<const window_keys::domain_id> memory_handles::key_domains(ucp_context_h context)
{
    if (context == nullptr || hardware_keys() == nullptr || !was_device_opened()) {
        return {};
    }
    const auto known = _key_domains.find(context);
    if (known != _key_domains.end()) {
        return known->second.domains;
    }
    if (abi::is_foreign(context)) {
        return {};
    }
    std::vector<window_keys::domain_id> domains;
    if (!find_key_domains(context, domains)) {
        return {};
    }
    return _key_domains.emplace(context, key_domains_of_context{md_observer::last_md(), std::move(domains)})
        .first->second.domains;
}

result<void> memory_handles::make_keys(ucp_context_h context, const window& window, key_choice choice)
{
    const auto domains = key_domains(context);
    return domains.empty() ? result<void>() : hardware_keys()->make(domains, content_of(window), choice);
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
    std::erase_if(_key_domains, [&](const auto& pair) { return pair.second.md == md; });
    std::erase_if(_md_of_context, [&](const auto& pair) { return pair.second == md; });
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
