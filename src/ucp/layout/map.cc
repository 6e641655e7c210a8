// ucp_layout_map, ucp_layout_map_base, ucp_layout_unmap and ucp_layout_rebind.
#include "carrier.h"
#include "handle.h"
#include "hardware_keys.h"
#include "heap_regions.h"
#include "map_state.h"
#include "options.h"
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

// Of a window that has no hardware key in this context.
window_carrier carrier_of_new_window(const context_view& view, const layout& layout, bool is_shared)
{
    switch (carrier_option()) {
    case window_carrier_option::copies:
        return window_carrier::copies;
    case window_carrier_option::keys:
        return window_carrier::keys;
    case window_carrier_option::automatic:
        break;
    }
    // In another context it may get a key, unless there are no cards: then shared memory is better used at once.
    const bool may_get_key = view.copying == nullptr ? !is_shared || was_device_opened() : !view.with_keys.empty();
    if (may_get_key) {
        return window_carrier::keys;
    }
    return carrier_without_keys(layout, is_shared).value_or(window_carrier::keys);
}

// Memory of a network card for every source, until the object ends.
class card_sources
{
public:
    card_sources() = default;
    ~card_sources()
    {
        for (const std::byte* const address : _addresses) {
            hardware_keys()->free(address);
        }
    }
    card_sources(const card_sources&)            = delete;
    card_sources& operator=(const card_sources&) = delete;

    // Errors: unsupported, no_memory.
    result<std::vector<std::byte*>> allocate(std::span<const window_keys::domain_id> domains, const layout& layout)
    {
        if (domains.empty()) {
            return fail(errc::unsupported, "base_memory_type is UCS_MEMORY_TYPE_RDMA, and the context has no device "
                                           "with hardware keys for windows");
        }
        std::vector<std::byte*> bases(layout.num_sources());
        _addresses.reserve(bases.size());
        for (std::uint32_t source = 0; source < bases.size(); ++source) {
            const auto& bounds = layout.bounds(source);
            const auto length  = bounds.true_length();
            if (length > 0) {
                std::byte* const address = UCXL_TRY(hardware_keys()->allocate(domains, length));
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

result<cached_window*> allocate_on_card(map_state& state, const context_view& view, const map_request& request)
{
    const auto owner = std::make_shared<card_sources>();
    auto bases       = UCXL_TRY(owner->allocate(view.with_keys, *request.layout->value));
    return state.cache.adopt(*request.layout, std::move(bases), owner,
                             carrier_option() == window_carrier_option::copies ? window_carrier::copies
                                                                               : window_carrier::keys);
}

result<cached_window*> make_window(map_state& state, const context_view& view, const map_request& request)
{
    const bool is_allocated = request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE);
    const auto carrier = [&](bool is_shared) { return carrier_of_new_window(view, *request.layout->value, is_shared); };
    if (!is_allocated) {
        return state.cache.acquire(*request.layout, request.bases, request.has(UCP_LAYOUT_MAP_FLAG_EXCLUSIVE), carrier);
    }
    if (request.is_of_card) {
        auto allocated = allocate_on_card(state, view, request);
        if (allocated || !request.has(UCP_LAYOUT_MAP_FLAG_OR_HOST)) {
            return allocated;
        }
        ucs_debug("host memory instead of memory of a network card: %s", allocated.error().message.c_str());
    }
    return state.cache.allocate(*request.layout, carrier(true));
}

// Makes the keys of a window that may have some. If there can be none, the CPU carries the window: it moves to the part
// of the arena that no device registers. UCP cannot be told later, so this comes before it learns of the window.
ucs_status_t choose_carrier(map_state& state, const context_view& view, const char* function, const window_user& user)
{
    cached_window& window = *user.window;
    if (window.target->carrier() != window_carrier::keys || state.memory.has_handle(user.context, window)) {
        return UCS_OK;
    }
    // Another user knows the address, so the window stays where it is.
    const bool is_fixed  = window.users > 1;
    const bool is_forced = is_fixed || carrier_option() == window_carrier_option::keys;
    const auto choice    = is_forced ? key_choice::always : key_choice::by_cost;
    const auto made      = make_keys(view, *window.target, choice);
    if (made) {
        return UCS_OK;
    }
    if (is_fixed) {
        ucs_error("%s: the window is mapped already, and in this context it cannot have a hardware key: %s", function,
                  made.error().message.c_str());
        return to_status(made.error().code);
    }
    ucs_debug("the CPU copies the window of %zu bytes: %s", window.target->length(), made.error().message.c_str());
    return status_of(function, state.cache.carry_by_copies(window, made.error()));
}

// The user holds the window on entry. On failure the caller releases whatever the user holds then.
ucs_status_t attach(map_state& state, const context_view& view, const char* function, window_user& user)
{
    if (user.context == nullptr) {
        return UCS_OK;
    }
    user.memory.reserve(1);
    if (const auto status = choose_carrier(state, view, function, user); status != UCS_OK) {
        return status;
    }
    memory_handle* handle = nullptr;
    const auto status     = state.memory.acquire(user.context, view, *user.window, &handle);
    if (status == UCS_OK) {
        user.memory.push_back(handle);
        user.window->had_memory_handle = true;
    }
    return status;
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
    const auto window = make_window(state, **view, request);
    if (!window) {
        return log_error(request.function, window.error());
    }
    window_user user{.window = *window, .context = context, .flags = request.flags, .memory = {}};
    rollback undo([&] { state.release(user); });
    const ucs_status_t status = attach(state, **view, request.function, user);
    if (status == UCS_OK) {
        window_figures::instance().add(*user.window, context != nullptr);
        *window_p = state.add(user);
        undo.cancel();
        if (address_p != nullptr) {
            *address_p = user.window->target->address();
        }
    }
    return status;
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
