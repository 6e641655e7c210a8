// The windows of ucp_layout_map: the layout and bases they show, their users, and the windows that are unused at
// present.
//
// A window is found by content, its layout and bases, and shared. Layouts of equal content have one handle
// (layout_table.h), so handles and bases are compared, and the length of a layout does not matter. An unused window is
// kept, up to UCX_LAYOUT_MAP_CACHE_SIZE, and the oldest one goes first. It costs address space and some hundred bytes.
// Mapping the same content again then needs no new window and no new registration (memory_handles.h). While unused, a
// window is unpublished: its addresses and remote keys reach nothing. Windows with memory of their own are neither
// shared nor kept, and those over regions are not kept, because they would keep the memory. An exclusive window is not
// found by content while it is used; once unused, it is kept like any other.
//
// Not thread safe: the caller (map.cc) holds its lock.
#pragma once

#include "decision.h"
#include "handle.h"
#include "ucs/window/window.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

namespace ucxl
{

// How window_figures counts a window.
struct carrier_count {
    std::optional<window_carrier> carrier; // none before it was counted first; also while it is unused
    std::uint8_t reason = 0;               // of copies
    bool is_live        = false;
};

struct window_user; // map_state.h

struct cached_window {
    handle_ptr layout;
    window* target = nullptr;
    unsigned users = 0;                // mappings; 0: the window is on the idle list
    bool exclusive = false;            // not in the index by content
    std::string why_copied;            // why it has no hardware key, if devices were asked
    std::uint64_t view      = 0;       // the number of that of the context whose devices were asked
    bool is_kept            = true;    // when unused, as far as there is room
    bool had_memory_handle  = false;   // in any context: its carrier is decided
    window_user* first_user = nullptr; // those with a handle, in a list
    carrier_count counted;
    std::list<cached_window*>::iterator idle_position;

    bool has_own_memory() const { return target->binding().memory != nullptr || target->binding().owner != nullptr; }
};

std::vector<std::byte*> to_bytes(std::span<void* const> bases);

class window_cache
{
public:
    using end_callback = std::function<void(const cached_window&)>;

    // Calls `ends` before a window is destroyed.
    window_cache(std::size_t max_idle, end_callback ends) : _max_idle(max_idle), _ends(std::move(ends)) {}
    ~window_cache();

    // Adds a use of the window over this memory of the caller. An exclusive window has only this use. Returns null if
    // there is none, or one that is unused and has to be made again: its keys cannot be had, devices of another context
    // than that of the view refused them, or its memory is shared by now. Throws std::bad_alloc.
    cached_window* reuse(ucp_layout& layout, std::span<void* const> bases, bool exclusive, std::uint64_t view);
    // Makes the window, with one use. Errors: as ucxl::create(). Throws std::bad_alloc.
    result<cached_window*> create(ucp_layout& layout, decision decided, bool exclusive);
    // Removes a use.
    void release(cached_window* cached);
    // Only for windows over memory of the caller that have one user.
    result<void> rebind(cached_window& cached, std::span<void* const> bases);

private:
    using owner_map     = std::unordered_map<const cached_window*, std::unique_ptr<cached_window>>;
    using content_index = std::unordered_multimap<std::uint64_t, cached_window*>;

    // Finds an unused window, or any window, and then rather one in use.
    cached_window* find(const ucp_layout& layout, std::span<void* const> bases, bool unused) const;
    bool wake(cached_window& cached);
    void index(cached_window& cached);
    void remove_from_index(const cached_window& cached);
    content_index::const_iterator position(const cached_window& cached) const;
    void destroy(cached_window* cached);

    std::size_t _max_idle;
    end_callback _ends;
    owner_map _windows;
    content_index _by_content;
    std::list<cached_window*> _idle; // oldest first
};

} // namespace ucxl
