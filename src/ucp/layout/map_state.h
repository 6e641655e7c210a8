// Maps the handles of windows to their users: who uses which window of the cache, with which stock memory handles.
//
// A ucp_layout_window_h is a number (numbered_handle.h). One lock guards everything here; fork holds it. Without it,
// the name of a window (window.h) tells the handle of its first user, so that an address leads to a handle.
//
// Example: map_state& state = map_state::instance(); const std::lock_guard guard(state.lock);
//          if (window_user* const user = state.find(__func__, window)) { ... }
#pragma once

#include "memory_handles.h"
#include "window_cache.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace ucxl
{

// One call of ucp_layout_map that was not unmapped.
struct window_user {
    cached_window* window;
    ucp_context_h context;              // the context of ucp_layout_map, or null; only for comparison
    unsigned flags;                     // ucp_layout_map_flags
    std::vector<memory_handle*> memory; // one use of each
    // Set by map_state: its handle, and its neighbours among the users of the window that have one.
    ucp_layout_window_h handle = nullptr;
    window_user* next          = nullptr;
    window_user* previous      = nullptr;

    // The memory handle in this context, or null.
    memory_handle* memory_in(ucp_context_h context) const;
};

struct map_state {
    static map_state& instance();

    // Adds a user under a new handle, and takes over what it holds. Throws std::bad_alloc: it still holds that then.
    ucp_layout_window_h add(window_user& user);
    // The handle of a user of the window that holds [address, address + length), or null. Takes no lock.
    static ucp_layout_window_h find_by_address(const void* address, std::size_t length);
    // Returns null and logs an error if it is no handle of a window.
    window_user* find(const char* function, ucp_layout_window_h handle);
    // Makes the hardware keys that the window lacks in the context, before it gets its memory handle there. Errors: why
    // it has to be copied there. Throws std::bad_alloc.
    result<void> complete_keys(const cached_window& window, ucp_context_h context, const context_view& view,
                               key_choice choice);
    // The user gets a memory handle in a context that has windows. UCP logged every other status than UCS_OK. Throws
    // std::bad_alloc; the user has none then.
    ucs_status_t attach(window_user& user, ucp_context_h context, const context_view& view);
    // Releases everything the user holds, and ends the handle.
    void remove(ucp_layout_window_h handle);
    // Releases everything the user holds.
    void release(const window_user& user);

    std::mutex lock;
    context_views views;
    window_cache cache;
    memory_handles memory;

private:
    map_state();

    static void enter(window_user& user);
    static void leave(const window_user& user);

    std::unordered_map<ucp_layout_window_h, window_user> _users;
    std::uintptr_t _last_handle = 0;
};

} // namespace ucxl
