// What the handles of windows mean: who uses which window of the cache, and which stock memory handles with it.
//
// A ucp_layout_window_h is a number, given out once in the life of a process and never followed as a pointer: a stale
// or foreign one is always found out. One lock protects everything here; it is held across fork.
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

// One ucp_layout_map that was not unmapped.
struct window_user {
    cached_window* window;
    ucp_context_h context;              // it was mapped with, or null; only to be compared
    unsigned flags;                     // ucp_layout_map_flags
    std::vector<memory_handle*> memory; // a use of each

    // In this context, or null.
    memory_handle* memory_in(ucp_context_h context) const;
};

struct map_state {
    static map_state& instance();

    // A new handle of a new user. Throws std::bad_alloc.
    ucp_layout_window_h add(window_user user);
    // Null, with an error logged, for what is no handle of a window.
    window_user* find(const char* function, ucp_layout_window_h handle);
    // Gives back all that the user has, and ends the handle.
    void remove(ucp_layout_window_h handle);
    // Gives back all that the user has.
    void release(const window_user& user);

    std::mutex lock;
    window_cache cache;
    memory_handles memory;

private:
    map_state();

    std::unordered_map<ucp_layout_window_h, window_user> _users;
    std::uintptr_t _last_handle = 0;
};

} // namespace ucxl
