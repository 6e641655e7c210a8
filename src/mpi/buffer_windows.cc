#include "buffer_windows.h"

#include "library.h"
#include "one_pass.h"
#include "settings.h"

#include <algorithm>
#include <utility>

namespace ucxl::mpi
{

namespace
{

// What the CPU moved through the window, also before this mapping.
std::uint64_t bytes_by_cpu(ucp_layout_window_h window)
{
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
    if (!settings::get().has_report || ucp_layout_window_query(window, &attr) != UCS_OK) {
        return 0;
    }
    return attr.statistics.bytes_read + attr.statistics.bytes_written;
}

bool map(bound_window& window, const type_layout& layout, void* base)
{
    ucp_layout_map_params_t params{};
    params.field_mask =
        UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES | UCP_LAYOUT_MAP_PARAM_FIELD_FLAGS;
    params.layout              = layout.layout.get();
    params.bases               = &base;
    params.num_bases           = 1;
    params.flags               = UCP_LAYOUT_MAP_FLAG_EXCLUSIVE;
    ucp_layout_window_h handle = nullptr;
    if (ucp_layout_map(library::context_of_windows(), &params, &handle) != UCS_OK) {
        return false;
    }
    ucp_layout_window_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_ADDRESS | UCP_LAYOUT_WINDOW_ATTR_FIELD_CARRIER;
    ucp_layout_window_query(handle, &attr);
    window.base          = base;
    window.handle        = handle;
    window.address       = attr.address;
    window.is_direct     = attr.carrier == UCP_LAYOUT_CARRIER_DIRECT;
    window.bytes_at_bind = bytes_by_cpu(handle);
    return true;
}

std::uint64_t unmap(const bound_window& window)
{
    const std::uint64_t moved = bytes_by_cpu(window.handle) - window.bytes_at_bind;
    ucp_layout_unmap(window.handle);
    return moved;
}

} // namespace

void buffer_windows::end(const bound_window& window)
{
    _moved_before += unmap(window);
    std::erase_if(_windows, [&](const auto& each) { return each.get() == &window; });
}

// Short windows are never direct, so it does not matter what memory they show.
bound_window* buffer_windows::bind(void* base, const type_layout& layout)
{
    const auto length    = static_cast<std::size_t>(layout.span);
    const bool is_shared = one_pass::is_on() && length >= one_pass::min_length && one_pass::has(base, length);
    const auto same      = std::ranges::find(_windows, base, [](const auto& each) { return each->base; });
    if (same != _windows.end()) {
        if ((*same)->users > 0 || (*same)->is_shared == is_shared) {
            return same->get();
        }
        end(**same);
    }
    if (_windows.size() >= settings::get().idle_windows) {
        bound_window* oldest = nullptr;
        for (const auto& each : _windows) {
            if (each->users == 0 && (oldest == nullptr || each->last_use < oldest->last_use)) {
                oldest = each.get();
            }
        }
        if (oldest != nullptr && oldest->is_shared != is_shared) {
            end(*oldest);
        } else if (oldest != nullptr && ucp_layout_rebind(oldest->handle, &base, 1) == UCS_OK) {
            oldest->base = base;
            return oldest;
        }
    }
    auto made       = std::make_unique<bound_window>();
    made->is_shared = is_shared;
    _windows.reserve(_windows.size() + 1);
    return map(*made, layout, base) ? _windows.emplace_back(std::move(made)).get() : nullptr;
}

bound_window* buffer_windows::take(void* base, const type_layout& layout, std::uint64_t use)
{
    bound_window* const window = bind(base, layout);
    if (window != nullptr) {
        ++window->users;
        window->last_use = use;
    }
    return window;
}

std::uint64_t buffer_windows::give_back(bound_window& window)
{
    --window.users;
    if (window.users == 0 && (!library::keeps_idle_windows() || _windows.size() > settings::get().idle_windows)) {
        end(window);
    }
    return std::exchange(_moved_before, 0);
}

std::uint64_t buffer_windows::unmap_unused()
{
    std::erase_if(_windows, [&](const auto& each) {
        if (each->users > 0) {
            return false;
        }
        _moved_before += unmap(*each);
        return true;
    });
    return std::exchange(_moved_before, 0);
}

} // namespace ucxl::mpi
