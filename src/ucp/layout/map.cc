// ucp_layout_map, ucp_layout_map_base, ucp_layout_unmap and ucp_layout_rebind.
#include "decision.h"
#include "handle.h"
#include "hardware_keys.h"
#include "heap_regions.h"
#include "map_state.h"
#include "sys/rollback.h"
#include "ucs/sys/argument.h"
#include "uct/layout/init.h"
#include "window_figures.h"

#include <cstring>
#include <format>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES |
                                       UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
constexpr unsigned known_flags =
    UCP_LAYOUT_MAP_FLAG_ALLOCATE | UCP_LAYOUT_MAP_FLAG_EXCLUSIVE | UCP_LAYOUT_MAP_FLAG_OR_HOST;

struct map_request {
    const char* function; // of the API, for messages
    ucp_layout* layout;
    std::span<void* const> bases; // empty: the library allocates
    unsigned flags;
    bool is_of_card; // the described memory is that of a network card

    bool has(ucp_layout_map_flags flag) const { return (flags & flag) != 0; }
};

// A window over another window is not supported: neither the CPU nor a key follows it.
bool is_describable(const void* base, const layout_bounds& bounds)
{
    const auto& registry = window_registry::instance();
    const auto first     = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(bounds.true_lb);
    const auto length    = bounds.true_length();
    const auto* start    = reinterpret_cast<const void*>(first);
    if (length == 0 || !registry.touches_arena(start, length)) {
        return true;
    }
    const reader_section section;
    const window* const found = registry.find(start, length);
    return found != nullptr && (found->binding().indirect != nullptr || found->is_identity());
}

ucs_status_t check_bases(const char* function, const layout& layout, std::span<void* const> bases)
{
    if (bases.data() == nullptr) {
        return log_invalid_param(function, "bases is NULL");
    }
    if (bases.size() != layout.num_sources()) {
        return log_invalid_param(
            function, std::format("num_bases is {}, the layout has {} sources", bases.size(), layout.num_sources()));
    }
    for (std::uint32_t source = 0; source < bases.size(); ++source) {
        const auto& bounds = layout.bounds(source);
        if (bases[source] == nullptr && bounds.true_ub > bounds.true_lb) {
            return log_invalid_param(
                function, std::format("bases[{0}] is NULL, and the layout describes bytes of source {0}", source));
        }
        if (!is_describable(bases[source], bounds)) {
            return log_invalid_param(function, std::format("bases[{}]: the layout reaches bytes that are addresses of "
                                                           "windows, and not memory of one network card",
                                                           source));
        }
    }
    return UCS_OK;
}

ucs_status_t check_memory_type(const ucp_layout_map_params_t& params)
{
    // A C caller may pass any number, and reading an unknown number as an enumeration is undefined.
    int type;
    static_assert(sizeof(type) == sizeof(params.base_memory_type));
    std::memcpy(&type, &params.base_memory_type, sizeof(type));
    if (type < 0 || type >= UCS_MEMORY_TYPE_LAST) {
        return log_invalid_param("ucp_layout_map", std::format("base_memory_type {} is unknown", type));
    }
    if (type != UCS_MEMORY_TYPE_HOST && type != UCS_MEMORY_TYPE_RDMA) {
        ucs_error("ucp_layout_map: base_memory_type %d is not supported, only UCS_MEMORY_TYPE_HOST and _RDMA are",
                  type);
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

ucs_status_t check(const ucp_layout_map_params_t& params, map_request& request)
{
    constexpr auto name = "ucp_layout_map";
    const auto is_set   = [&](std::uint64_t field) { return (params.field_mask & field) != 0; };
    if (const auto status = check_field_mask(name, params.field_mask, known_fields); status != UCS_OK) {
        return status;
    }
    if (!is_set(UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT) || params.layout == nullptr) {
        return log_invalid_param(name, "layout is required");
    }
    const unsigned flags = is_set(UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS) ? params.flags : 0;
    if ((flags & ~known_flags) != 0) {
        return log_invalid_param(name, std::format("flags {:#x} has unknown bits {:#x}", flags, flags & ~known_flags));
    }
    if (is_set(UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE)) {
        if (const auto status = check_memory_type(params); status != UCS_OK) {
            return status;
        }
    }
    const bool is_of_card =
        is_set(UCP_LAYOUT_MAP_PARAM_FIELD_BASE_MEMORY_TYPE) && params.base_memory_type == UCS_MEMORY_TYPE_RDMA;
    request = {.function = name, .layout = params.layout, .bases = {}, .flags = flags, .is_of_card = is_of_card};
    if (request.has(UCP_LAYOUT_MAP_FLAG_OR_HOST) && !(is_of_card && request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE))) {
        return log_invalid_param(name,
                                 "flags has UCP_LAYOUT_MAP_FLAG_OR_HOST, which needs UCP_LAYOUT_MAP_FLAG_ALLOCATE "
                                 "and base_memory_type UCS_MEMORY_TYPE_RDMA");
    }
    if (request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE)) {
        return is_set(UCP_LAYOUT_MAP_PARAM_FIELD_BASES)
                   ? log_invalid_param(name, "bases must not be set with UCP_LAYOUT_MAP_FLAG_ALLOCATE")
                   : UCS_OK;
    }
    if (!is_set(UCP_LAYOUT_MAP_PARAM_FIELD_BASES)) {
        return log_invalid_param(name, "bases are required without UCP_LAYOUT_MAP_FLAG_ALLOCATE");
    }
    request.bases = {params.bases, params.num_bases};
    return check_bases(name, *params.layout->value, request.bases);
}

// Memory of a network card for every source, until the object ends.
class card_sources
{
public:
    card_sources() = default;
    ~card_sources()
    {
        window_keys* const keys = hardware_keys(); // none in a child of fork(): the memory is the parent's
        for (std::size_t i = 0; keys != nullptr && i < _addresses.size(); ++i) {
            keys->free(_addresses[i]);
        }
    }
    card_sources(const card_sources&)            = delete;
    card_sources& operator=(const card_sources&) = delete;

    // Errors: unsupported, no_memory.
    result<std::vector<std::byte*>> allocate(const context_view& view, const layout& layout)
    {
        window_keys* const keys = keys_in(view);
        if (keys == nullptr) {
            return fail(errc::unsupported, "base_memory_type is UCS_MEMORY_TYPE_RDMA, and the context has no device "
                                           "with hardware keys for windows");
        }
        std::vector<std::byte*> bases(layout.num_sources());
        _addresses.reserve(bases.size());
        for (std::uint32_t source = 0; source < bases.size(); ++source) {
            const auto& bounds = layout.bounds(source);
            const auto length  = bounds.true_length();
            if (length > 0) {
                std::byte* const address = UCXL_TRY(keys->allocate(view.with_keys, length));
                _addresses.push_back(address);
                bases[source] = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) -
                                                             static_cast<std::uintptr_t>(bounds.true_lb));
            }
        }
        return bases;
    }

private:
    std::vector<const std::byte*> _addresses;
};

result<window_binding> bind_to_card(const context_view& view, pack_plan_ptr plan)
{
    const auto owner = std::make_shared<card_sources>();
    auto bases       = UCXL_TRY(owner->allocate(view, *plan->source_layout()));
    window_binding binding{std::move(plan), std::move(bases)};
    binding.owner = owner;
    return binding;
}

result<window_binding> bind(const context_view& view, const map_request& request)
{
    auto plan = UCXL_TRY(request.layout->plan());
    if (!request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE)) {
        return window_binding{std::move(plan), to_bytes(request.bases)};
    }
    if (request.is_of_card) {
        auto allocated = bind_to_card(view, plan);
        if (allocated || !request.has(UCP_LAYOUT_MAP_FLAG_OR_HOST)) {
            return allocated;
        }
        ucs_debug("host memory instead of memory of a network card: %s", allocated.error().message.c_str());
    }
    return window_registry::instance().allocate_memory(std::move(plan));
}

// The window that is there already, with the keys that it lacks in this context. Null if there is none, or if nobody
// uses it and it would have to be copied now.
result<cached_window*> find(map_state& state, ucp_context_h context, const context_view& view,
                            const map_request& request)
{
    if (request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE)) {
        return nullptr;
    }
    cached_window* const known =
        state.cache.reuse(*request.layout, request.bases, request.has(UCP_LAYOUT_MAP_FLAG_EXCLUSIVE), view.number);
    if (known == nullptr) {
        return nullptr;
    }
    rollback undo([&] { state.cache.release(known); });
    const bool is_fixed = known->users > 1; // another user knows its address
    const auto choice   = is_fixed ? key_choice::always : wanted_choice();
    if (const auto made = state.complete_keys(*known, context, view, choice); !made) {
        known->is_kept = known->is_kept && is_fixed;
        return is_fixed ? fail(made.error().code, "the window is mapped already, and in this context it cannot have a "
                                                  "hardware key: " +
                                                      made.error().message)
                        : result<cached_window*>(nullptr);
    }
    undo.cancel();
    return known;
}

// Adds a use.
result<cached_window*> find_or_make(map_state& state, ucp_context_h context, const context_view& view,
                                    const map_request& request)
{
    if (auto* const known = UCXL_TRY(find(state, context, view, request))) {
        return known;
    }
    auto binding = UCXL_TRY(bind(view, request));
    auto decided = UCXL_TRY(decide(view, std::move(binding)));
    return state.cache.create(*request.layout, std::move(decided), request.has(UCP_LAYOUT_MAP_FLAG_EXCLUSIVE));
}

// Writes the address, too, unless address_p is null.
ucs_status_t map(ucp_context_h context, const map_request& request, ucp_layout_window_h* window_p, void** address_p)
{
    // A UCX that was loaded after this library serves contexts that are made from now on.
    if (const auto usable = uct_layout_init(); !usable) {
        log_error(request.function, usable.error());
        return UCS_ERR_NO_DEVICE;
    }
    share_heap();
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto view = state.views.of(context);
    if (!view) {
        return log_error(request.function, view.error());
    }
    if (context != nullptr && (*view)->copying == nullptr) {
        return log_error(request.function, {errc::no_device, why_no_windows(context)});
    }
    const auto window = find_or_make(state, context, **view, request);
    if (!window) {
        return log_error(request.function, window.error());
    }
    window_user user{.window = *window, .context = context, .flags = request.flags, .memory = {}};
    rollback undo([&] { state.release(user); });
    if (context == nullptr) {
        window_figures::instance().add(**window);
    } else if (const auto status = state.attach(user, context, **view); status != UCS_OK) {
        return status;
    }
    *window_p = state.add(user);
    undo.cancel();
    if (address_p != nullptr) {
        *address_p = (*window)->target->address();
    }
    return UCS_OK;
}

ucs_status_t unmap(ucp_layout_window_h window)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    if (state.find("ucp_layout_unmap", window) == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    state.remove(window);
    return UCS_OK;
}

ucs_status_t rebind(ucp_layout_window_h window, std::span<void* const> bases)
{
    constexpr auto name = "ucp_layout_rebind";
    share_heap();
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const window_user* const user = state.find(name, window);
    if (user == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    cached_window& shown = *user->window;
    if (shown.has_own_memory()) {
        return log_invalid_param(name, "the window has memory of its own (UCP_LAYOUT_MAP_FLAG_ALLOCATE)");
    }
    if (const auto status = check_bases(name, *shown.layout->value, bases); status != UCS_OK) {
        return status;
    }
    if (shown.users > 1) {
        ucs_error("%s: the same layout and bases are mapped %u times (see UCP_LAYOUT_MAP_FLAG_EXCLUSIVE)", name,
                  shown.users);
        return UCS_ERR_BUSY;
    }
    return status_of(name, state.cache.rebind(shown, bases));
}

} // namespace

ucs_status_t ucp_layout_map(ucp_context_h context, const ucp_layout_map_params_t* params, ucp_layout_window_h* window_p)
{
    return checked(__func__, {{"params", params}, {"window_p", window_p}}, [&] {
        map_request request{};
        const auto status = check(*params, request);
        return status == UCS_OK ? map(context, request, window_p, nullptr) : status;
    });
}

ucs_status_t ucp_layout_map_base(ucp_context_h context, ucp_layout_h layout, void* base, ucp_layout_window_h* window_p,
                                 void** address_p)
{
    return checked(__func__, {{"layout", layout}, {"window_p", window_p}, {"address_p", address_p}}, [&] {
        constexpr auto name = "ucp_layout_map_base";
        const map_request request{
            .function = name, .layout = layout, .bases = {&base, 1}, .flags = 0, .is_of_card = false};
        const auto status = check_bases(name, *layout->value, request.bases);
        return status == UCS_OK ? map(context, request, window_p, address_p) : status;
    });
}

ucs_status_t ucp_layout_unmap(ucp_layout_window_h window)
{
    return checked(__func__, {{"window", window}}, [&] { return unmap(window); });
}

ucs_status_t ucp_layout_rebind(ucp_layout_window_h window, void* const* bases, uint32_t num_bases)
{
    return checked(__func__, {{"window", window}}, [&] { return rebind(window, std::span(bases, num_bases)); });
}
