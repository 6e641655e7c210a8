// ucp_layout_window_*: finding windows, queries, and stock memory handles in further contexts.
#include "decision.h"
#include "handle.h"
#include "map_state.h"
#include "ucs/sys/argument.h"

#include <algorithm>
#include <span>
#include <string>

using namespace ucxl;

namespace
{

constexpr std::uint64_t known_fields =
    UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH | UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH |
    UCP_LAYOUT_WINDOW_ATTR_FIELD_LAYOUT | UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES |
    UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS | UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS |
    UCP_LAYOUT_WINDOW_ATTR_FIELD_BASE_MEMORY_TYPE | UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER;

static_assert(static_cast<int>(window_carrier::undecided) == UCP_LAYOUT_CARRIER_UNDECIDED &&
              static_cast<int>(window_carrier::keys) == UCP_LAYOUT_CARRIER_KEYS &&
              static_cast<int>(window_carrier::copies) == UCP_LAYOUT_CARRIER_COPIES &&
              static_cast<int>(window_carrier::direct) == UCP_LAYOUT_CARRIER_DIRECT);

// Calls body(state, user) with the user of the handle, under the lock.
template <typename Body>
ucs_status_t with_user(const char* function, ucp_layout_window_h window, Body&& body)
{
    auto& state = map_state::instance();
    const std::lock_guard guard(state.lock);
    window_user* const user = state.find(function, window);
    return user == nullptr ? UCS_ERR_INVALID_PARAM : body(state, *user);
}

void fill(const window_user& user, ucp_layout_window_attr_t& attr)
{
    const auto asked = [&](std::uint64_t field) { return (attr.field_mask & field) != 0; };
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER)) {
        attr.carrier = static_cast<ucp_layout_carrier_t>(carrier_of(*user.window)); // first: it may run out of memory
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS)) {
        attr.address = user.window->target->address();
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_LENGTH)) {
        attr.length = user.window->target->length();
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_MEMH)) {
        const memory_handle* const handle = user.memory_in(user.context);
        attr.memh                         = handle == nullptr ? nullptr : handle->memh;
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_LAYOUT)) {
        attr.layout = retain(user.window->layout.get()).release();
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_NUM_SOURCES)) {
        attr.num_sources = user.window->layout->value->num_sources();
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_FLAGS)) {
        attr.flags = user.flags;
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_BASE_MEMORY_TYPE)) {
        attr.base_memory_type =
            user.window->target->binding().has_indirect_bases ? UCS_MEMORY_TYPE_RDMA : UCS_MEMORY_TYPE_HOST;
    }
    if (asked(UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS)) {
        const auto moved = user.window->target->traffic().get();
        attr.statistics  = {.reads         = moved.reads,
                            .writes        = moved.writes,
                            .bytes_read    = moved.bytes_read,
                            .bytes_written = moved.bytes_written};
    }
}

ucs_status_t copy_reason(const window_user& user, std::span<char> text)
{
    if (text.empty()) {
        ucs_error("ucp_layout_window_carrier_reason: length is 0, and the text has at least its final 0");
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    const std::string reason                        = why_no_key(*user.window);
    text[reason.copy(text.data(), text.size() - 1)] = 0;
    return UCS_OK;
}

ucs_status_t copy_bases(const window_user& user, void** bases, std::uint32_t num_bases)
{
    const auto& shown = user.window->target->binding().bases;
    if (num_bases < shown.size()) {
        ucs_error("ucp_layout_window_bases: num_bases is %u, the layout has %zu sources", num_bases, shown.size());
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    std::ranges::copy(shown, bases);
    return UCS_OK;
}

// The address of the window is known, so it cannot become one that is copied.
ucs_status_t give_memh(map_state& state, window_user& user, ucp_context_h context, ucp_mem_h* memh_p)
{
    constexpr auto name = "ucp_layout_window_memh";
    if (user.memory_in(context) == nullptr) {
        const auto view = state.views.of(context);
        if (!view || (*view)->copying == nullptr) {
            return log_error(name, view ? error{errc::no_device, why_no_windows(context)} : view.error());
        }
        if (const auto made = state.complete_keys(*user.window, context, **view, key_choice::always); !made) {
            return log_error(name, made.error());
        }
        if (const auto status = state.attach(user, context, **view); status != UCS_OK) {
            return status;
        }
    }
    *memh_p = user.memory_in(context)->memh;
    return UCS_OK;
}

ucs_status_t detach(map_state& state, window_user& user, ucp_context_h context)
{
    memory_handle* const handle = user.memory_in(context);
    if (handle == nullptr) {
        ucs_error("ucp_layout_window_detach: the window has no memory handle in context %p",
                  static_cast<void*>(context));
        return UCS_ERR_INVALID_PARAM;
    }
    std::erase(user.memory, handle);
    state.memory.release(handle);
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_window_query(ucp_layout_window_h window, ucp_layout_window_attr_t* attr)
{
    constexpr auto name = "ucp_layout_window_query";
    return checked(name, {{"window", window}, {"attr", attr}}, [&] {
        return with_user(name, window, [&](map_state&, const window_user& user) {
            const auto status = check_field_mask(name, attr->field_mask, known_fields);
            if (status == UCS_OK) {
                fill(user, *attr);
            }
            return status;
        });
    });
}

ucs_status_t ucp_layout_window_carrier_reason(ucp_layout_window_h window, char* text, size_t length)
{
    constexpr auto name = "ucp_layout_window_carrier_reason";
    return checked(name, {{"window", window}, {"text", text}}, [&] {
        return with_user(name, window, [&](map_state&, const window_user& user) {
            return copy_reason(user, std::span(text, length));
        });
    });
}

ucs_status_t ucp_layout_window_find(const void* address, size_t length, ucp_layout_window_h* window_p)
{
    return checked(__func__, {{"window_p", window_p}}, [&] {
        const ucp_layout_window_h found = map_state::find_by_address(address, length);
        if (found == nullptr) {
            return UCS_ERR_NO_ELEM;
        }
        *window_p = found;
        return UCS_OK;
    });
}

ucs_status_t ucp_layout_window_bases(ucp_layout_window_h window, void** bases, uint32_t num_bases)
{
    constexpr auto name = "ucp_layout_window_bases";
    return checked(name, {{"window", window}, {"bases", bases}}, [&] {
        return with_user(name, window,
                         [&](map_state&, const window_user& user) { return copy_bases(user, bases, num_bases); });
    });
}

ucs_status_t ucp_layout_window_memh(ucp_layout_window_h window, ucp_context_h context, ucp_mem_h* memh_p)
{
    constexpr auto name = "ucp_layout_window_memh";
    return checked(name, {{"window", window}, {"context", context}, {"memh_p", memh_p}}, [&] {
        return with_user(name, window,
                         [&](map_state& state, window_user& user) { return give_memh(state, user, context, memh_p); });
    });
}

ucs_status_t ucp_layout_window_detach(ucp_layout_window_h window, ucp_context_h context)
{
    constexpr auto name = "ucp_layout_window_detach";
    return checked(name, {{"window", window}, {"context", context}}, [&] {
        return with_user(name, window,
                         [&](map_state& state, window_user& user) { return detach(state, user, context); });
    });
}
