// ucp_layout_map, ucp_layout_unmap and ucp_layout_rebind.
#include "handle.h"
#include "map_state.h"
#include "options.h"
#include "sys/rollback.h"
#include "ucs/sys/argument.h"
#include "uct/layout/init.h"

#include <cstring>
#include <format>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES |
                                       UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
constexpr unsigned known_flags = UCP_LAYOUT_MAP_FLAG_ALLOCATE | UCP_LAYOUT_MAP_FLAG_EXCLUSIVE;

struct map_request {
    ucp_layout* layout;
    std::span<void* const> bases; // empty: the library allocates
    unsigned flags;

    bool has(ucp_layout_map_flags flag) const { return (flags & flag) != 0; }
};

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
    }
    return UCS_OK;
}

ucs_status_t check_memory_type(const ucp_layout_map_params_t& params)
{
    // A C caller may pass any number, and reading an unknown number as an enumeration is undefined.
    int type;
    static_assert(sizeof(type) == sizeof(params.memory_type));
    std::memcpy(&type, &params.memory_type, sizeof(type));
    if (type < 0 || type >= UCS_MEMORY_TYPE_LAST) {
        return log_invalid_param("ucp_layout_map", std::format("memory_type {} is unknown", type));
    }
    if (type != UCS_MEMORY_TYPE_HOST) {
        ucs_error("ucp_layout_map: memory_type %d is not supported, only UCS_MEMORY_TYPE_HOST is", type);
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
    if (is_set(UCP_LAYOUT_MAP_PARAM_FIELD_MEMORY_TYPE)) {
        if (const auto status = check_memory_type(params); status != UCS_OK) {
            return status;
        }
    }
    request = {.layout = params.layout, .bases = {}, .flags = flags};
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

window_carrier carrier_of_new_windows()
{
    return carrier_option() == window_carrier_option::copies ? window_carrier::copies : window_carrier::keys;
}

result<cached_window*> make_window(window_cache& cache, const map_request& request)
{
    const window_carrier carrier = carrier_of_new_windows();
    return request.has(UCP_LAYOUT_MAP_FLAG_ALLOCATE)
               ? cache.allocate(*request.layout, carrier)
               : cache.acquire(*request.layout, request.bases, request.has(UCP_LAYOUT_MAP_FLAG_EXCLUSIVE), carrier);
}

// Makes the keys of a window that may have some. If there can be none, the CPU carries the window: it moves to the part
// of the arena that no device registers. UCP cannot be told later, so this comes before it learns of the window.
ucs_status_t choose_carrier(map_state& state, const window_user& user)
{
    cached_window& window = *user.window;
    if (window.target->carrier() == window_carrier::copies || state.memory.has_handle(user.context, window)) {
        return UCS_OK;
    }
    const bool is_forced = carrier_option() == window_carrier_option::keys;
    const auto made =
        state.memory.make_keys(user.context, *window.target, is_forced ? key_choice::always : key_choice::by_cost);
    if (made) {
        return UCS_OK;
    }
    // Another context, or an address that the user knows already, holds a window where it is.
    if (window.users > 1 || window.is_known) {
        ucs_error("ucp_layout_map: the window is mapped already, and in this context it cannot have a hardware key: %s",
                  made.error().message.c_str());
        return to_status(made.error().code);
    }
    ucs_debug("the CPU copies the window of %zu bytes: %s", window.target->length(), made.error().message.c_str());
    return status_of("ucp_layout_map", state.cache.carry_by_copies(window, made.error().message));
}

// The user holds the window on entry. On failure the caller releases whatever the user holds then.
ucs_status_t attach(map_state& state, window_user& user)
{
    if (user.context == nullptr) {
        user.window->is_known = true;
        return UCS_OK;
    }
    user.memory.reserve(1);
    if (const auto status = choose_carrier(state, user); status != UCS_OK) {
        return status;
    }
    user.window->is_known = true;
    memory_handle* handle = nullptr;
    const auto status     = state.memory.acquire("ucp_layout_map", user.context, *user.window, &handle);
    if (status == UCS_OK) {
        user.memory.push_back(handle);
    }
    return status;
}

ucs_status_t map(ucp_context_h context, const map_request& request, ucp_layout_window_h* window_p)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    const auto window = make_window(state.cache, request);
    if (!window) {
        return log_error("ucp_layout_map", window.error());
    }
    window_user user{.window = *window, .context = context, .flags = request.flags, .memory = {}};
    rollback undo([&] { state.release(user); });
    const ucs_status_t status = attach(state, user);
    if (status == UCS_OK) {
        *window_p = state.add(user);
        undo.cancel();
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
    auto& state         = map_state::instance();
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
        map_request request;
        const auto status = check(*params, request);
        if (status != UCS_OK) {
            return status;
        }
        // A UCX that was loaded after this library serves contexts that are made from now on.
        if (const auto usable = uct_layout_init(); !usable) {
            log_error("ucp_layout_map", usable.error());
            return UCS_ERR_NO_DEVICE;
        }
        return map(context, request, window_p);
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
