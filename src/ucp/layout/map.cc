// ucp_layout_map, _rebind, _mem_query and _unmap.
//
// A mapping is one stock ucp_mem_h over one window of the cache; mapping the same content in the same context again
// counts up.
#include "handle.h"
#include "options.h"
#include "ucs/sys/status.h"
#include "uct/layout/init.h"
#include "uct/layout/md_observer.h"
#include "window_cache.h"

#include <format>
#include <memory>
#include <mutex>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include <pthread.h>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_map_fields = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES |
                                           UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMHS |
                                           UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
constexpr std::uint64_t known_mem_fields = UCP_LAYOUT_MEM_ATTR_FIELD_ADDRESS | UCP_LAYOUT_MEM_ATTR_FIELD_LENGTH |
                                           UCP_LAYOUT_MEM_ATTR_FIELD_BASES | UCP_LAYOUT_MEM_ATTR_FIELD_LAYOUT;

struct mapping {
    ucp_context_h context;
    cached_window* window;
    unsigned count;
};

struct mapping_key {
    ucp_context_h context;
    const cached_window* window;
    bool operator==(const mapping_key&) const = default;
};

struct mapping_key_hash {
    std::size_t operator()(const mapping_key& key) const
    {
        return std::hash<const void*>()(key.context) * 31 + std::hash<const void*>()(key.window);
    }
};

// Everything ucp_layout_map knows. Never destroyed: UCX contexts may be cleaned up by destructors that run later.
struct map_state {
    std::mutex lock;
    window_cache cache{map_cache_size()};
    std::unordered_map<ucp_mem_h, mapping> mappings;
    std::unordered_map<mapping_key, ucp_mem_h, mapping_key_hash> by_window;
    // Contexts seen to have our memory domain, with that domain: in them a memory registration of a window may be found
    // in UCP's cache.
    std::unordered_map<ucp_context_h, const void*> md_of_context;

    static map_state& instance();
};

map_state& map_state::instance()
{
    static map_state& state = *[] {
        auto* made = new map_state;
        // A child forked while another thread maps must not inherit a held lock.
        pthread_atfork([] { instance().lock.lock(); }, [] { instance().lock.unlock(); },
                       [] { instance().lock.unlock(); });
        // A closed context's address may be that of the next one, which may lack our domain.
        on_md_close([](const void* md) {
            const std::lock_guard guard(instance().lock);
            std::erase_if(instance().md_of_context, [&](const auto& pair) { return pair.second == md; });
        });
        return made;
    }();
    return state;
}

ucs_status_t invalid(const std::string& message)
{
    ucs_error("ucp_layout_map: %s", message.c_str());
    return UCS_ERR_INVALID_PARAM;
}

struct map_request {
    ucp_layout* layout;
    std::span<void* const> bases;
    bool allocate;
};

ucs_status_t check_bases(const ucp_layout_map_params_t& params, bool allocate)
{
    const bool given           = (params.field_mask & UCP_LAYOUT_MAP_PARAM_FIELD_BASES) != 0;
    const std::uint32_t needed = params.layout->value->num_sources();
    if (allocate) {
        return given ? invalid("bases must not be given with UCP_LAYOUT_MAP_FLAG_ALLOCATE") : UCS_OK;
    }
    if (!given || params.bases == nullptr) {
        return invalid("bases are required without UCP_LAYOUT_MAP_FLAG_ALLOCATE");
    }
    if (params.num_bases != needed) {
        return invalid(std::format("num_bases is {}, the layout has {} sources", params.num_bases, needed));
    }
    return UCS_OK;
}

ucs_status_t check(const ucp_layout_map_params_t& params, map_request& request)
{
    auto status = check_field_mask("ucp_layout_map", params.field_mask, known_map_fields);
    if (status != UCS_OK) {
        return status;
    }
    if (!(params.field_mask & UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT) || params.layout == nullptr) {
        return invalid("layout is required");
    }
    const unsigned flags = (params.field_mask & UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS) ? params.flags : 0;
    if ((flags & ~static_cast<unsigned>(UCP_LAYOUT_MAP_FLAG_ALLOCATE)) != 0) {
        return invalid(std::format("flags {:#x} has unknown bits", flags));
    }
    if ((params.field_mask & UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE) && params.memory_type != UCS_MEMORY_TYPE_HOST) {
        ucs_error("ucp_layout_map: memory_type %d is not served, only UCS_MEMORY_TYPE_HOST is",
                  static_cast<int>(params.memory_type));
        return UCS_ERR_UNSUPPORTED;
    }
    const bool allocate = (flags & UCP_LAYOUT_MAP_FLAG_ALLOCATE) != 0;
    status              = check_bases(params, allocate);
    if (status != UCS_OK) {
        return status;
    }
    request = {params.layout, allocate ? std::span<void* const>() : std::span(params.bases, params.num_bases),
               allocate};
    return UCS_OK;
}

// Our memory domain is part of a context only if UCX_TLS lets one of its transports in; without it UCP would take the
// window for host memory and crash.
ucs_status_t check_md(map_state& state, ucp_context_h context, std::uint64_t registrations_before)
{
    if (md_observer::registrations() != registrations_before) {
        state.md_of_context[context] = md_observer::last_md();
        return UCS_OK;
    }
    if (state.md_of_context.contains(context)) {
        return UCS_OK;
    }
    ucs_error(
        "ucp_layout_map: the transport lay_copy is not in this UCP context. UCX_TLS (or the TLS option of the context) "
        "leaves it out: add lay_copy to the list, for example UCX_TLS=posix,cma,lay_copy");
    return UCS_ERR_NO_DEVICE;
}

struct unmap_memory {
    ucp_context_h context;
    void operator()(ucp_mem_h memh) const { ucp_mem_unmap(context, memh); }
};

using memh_owner = std::unique_ptr<std::remove_pointer_t<ucp_mem_h>, unmap_memory>;

ucs_status_t map_memory(map_state& state, ucp_context_h context, const window& view, memh_owner& memh)
{
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = view.address();
    params.length      = std::max<std::uint64_t>(view.length(), 1); // UCP has one shared handle for all empty memory
    params.memory_type = UCS_MEMORY_TYPE_RDMA;

    const auto registrations = md_observer::registrations();
    ucp_mem_h mapped;
    const auto status = ucp_mem_map(context, &params, &mapped);
    if (status != UCS_OK) {
        return status; // logged by UCP
    }
    memh = memh_owner(mapped, {context});
    return check_md(state, context, registrations);
}

// The window is used once more on entry; on failure the caller gives that use back.
ucs_status_t attach(map_state& state, ucp_context_h context, cached_window& window, ucp_mem_h* memh_p)
{
    if (const auto known = state.by_window.find({context, &window}); known != state.by_window.end()) {
        ++state.mappings.at(known->second).count;
        state.cache.release(&window); // one use for all counts of a mapping
        *memh_p = known->second;
        return UCS_OK;
    }
    memh_owner memh;
    const auto status = map_memory(state, context, *window.view, memh);
    if (status != UCS_OK) {
        return status;
    }
    const auto added = state.mappings.emplace(memh.get(), mapping{context, &window, 1}).first;
    try {
        state.by_window.emplace(mapping_key{context, &window}, memh.get());
    } catch (...) {
        state.mappings.erase(added);
        throw;
    }
    *memh_p = memh.release();
    return UCS_OK;
}

ucs_status_t map(ucp_context_h context, const map_request& request, ucp_mem_h* memh_p, void** address_p)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    auto window =
        request.allocate ? state.cache.allocate(*request.layout) : state.cache.acquire(*request.layout, request.bases);
    if (!window) {
        return log_error("ucp_layout_map", window.error());
    }
    ucs_status_t status;
    try {
        status = attach(state, context, **window, memh_p);
    } catch (...) {
        state.cache.release(*window);
        throw;
    }
    if (status != UCS_OK) {
        state.cache.release(*window);
        return status;
    }
    *address_p = (*window)->view->address();
    return UCS_OK;
}

// The mapping of a handle, or null with an error logged.
mapping* find(map_state& state, const char* function, ucp_mem_h memh)
{
    const auto it = state.mappings.find(memh);
    if (it == state.mappings.end()) {
        ucs_error("%s: memory handle %p is not a window", function, static_cast<void*>(memh));
        return nullptr;
    }
    return &it->second;
}

ucs_status_t rebind(ucp_mem_h memh, std::span<void* const> bases)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto* const mapped = find(state, "ucp_layout_rebind", memh);
    if (mapped == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    cached_window& window      = *mapped->window;
    const std::uint32_t needed = window.layout->value->num_sources();
    if (window.has_own_memory()) {
        ucs_error("ucp_layout_rebind: the window has memory of its own (UCP_LAYOUT_MAP_FLAG_ALLOCATE)");
        return UCS_ERR_INVALID_PARAM;
    }
    if (bases.size() != needed || bases.data() == nullptr) {
        ucs_error("ucp_layout_rebind: num_bases is %zu, the layout has %u sources", bases.size(), needed);
        return UCS_ERR_INVALID_PARAM;
    }
    if (mapped->count > 1 || window.users > 1) {
        ucs_error("ucp_layout_rebind: the same layout and bases are mapped %u times",
                  std::max(mapped->count, window.users));
        return UCS_ERR_BUSY;
    }
    const auto bound = state.cache.rebind(window, bases);
    return bound ? UCS_OK : log_error("ucp_layout_rebind", bound.error());
}

ucs_status_t unmap(ucp_context_h context, ucp_mem_h memh)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    auto* const mapped = find(state, "ucp_layout_unmap", memh);
    if (mapped == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (mapped->context != context) {
        ucs_error("ucp_layout_unmap: the window was mapped with another context");
        return UCS_ERR_INVALID_PARAM;
    }
    if (--mapped->count > 0) {
        return UCS_OK;
    }
    cached_window* const window = mapped->window;
    state.by_window.erase({context, window});
    state.mappings.erase(memh);
    const auto status = ucp_mem_unmap(context, memh);
    state.cache.release(window);
    return status;
}

ucs_status_t fill(const cached_window& window, ucp_layout_mem_attr_t& attr)
{
    const auto asked  = [&](std::uint64_t field) { return (attr.field_mask & field) != 0; };
    const auto& bases = window.view->binding().bases;
    if (asked(UCP_LAYOUT_MEM_ATTR_FIELD_BASES)) {
        if (attr.num_bases < bases.size()) {
            ucs_error("ucp_layout_mem_query: num_bases is %u, the layout has %zu sources", attr.num_bases,
                      bases.size());
            return UCS_ERR_BUFFER_TOO_SMALL;
        }
        std::copy(bases.begin(), bases.end(), attr.bases);
        attr.num_bases = static_cast<std::uint32_t>(bases.size());
    }
    if (asked(UCP_LAYOUT_MEM_ATTR_FIELD_ADDRESS)) {
        attr.address = window.view->address();
    }
    if (asked(UCP_LAYOUT_MEM_ATTR_FIELD_LENGTH)) {
        attr.length = window.view->length();
    }
    if (asked(UCP_LAYOUT_MEM_ATTR_FIELD_LAYOUT)) {
        attr.layout = retain(window.layout.get()).release();
    }
    return UCS_OK;
}

ucs_status_t query(ucp_mem_h memh, ucp_layout_mem_attr_t& attr)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto* const mapped = find(state, "ucp_layout_mem_query", memh);
    if (mapped == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    const auto status = check_field_mask("ucp_layout_mem_query", attr.field_mask, known_mem_fields);
    return status != UCS_OK ? status : fill(*mapped->window, attr);
}

} // namespace

ucs_status_t ucp_layout_map(ucp_context_h context, const ucp_layout_map_params_t* params, ucp_mem_h* memh_p,
                            void** address_p)
{
    return guarded(__func__, [&] {
        map_request request;
        const auto status = check(*params, request);
        if (status != UCS_OK) {
            return status;
        }
        if (const auto known = uct_layout_status(); !known) {
            log_error("ucp_layout_map", known.error());
            return UCS_ERR_NO_DEVICE;
        }
        return map(context, request, memh_p, address_p);
    });
}

ucs_status_t ucp_layout_rebind(ucp_mem_h memh, void* const* bases, uint32_t num_bases)
{
    return guarded(__func__, [&] { return rebind(memh, std::span(bases, num_bases)); });
}

ucs_status_t ucp_layout_unmap(ucp_context_h context, ucp_mem_h memh)
{
    return guarded(__func__, [&] { return unmap(context, memh); });
}

ucs_status_t ucp_layout_mem_query(ucp_mem_h memh, ucp_layout_mem_attr_t* attr)
{
    return guarded(__func__, [&] { return query(memh, *attr); });
}
