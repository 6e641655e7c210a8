// The stock memory handles of windows: one for each window and UCP context, with a use count.
//
// A handle that nobody uses is kept while its window exists and its context has workers, because ucp_mem_map takes long
// (see map_memory()). Only calls for its own context release it, because another thread may be using that context: a
// handle whose window is gone waits for the next such call, or for the last worker.
//
// A context that is cleaned up before its handles are released takes their registrations along, as UCP does. The
// objects that are left name no context. So they can be released at any time.
//
// Not thread safe: the caller (map_state.h) holds its lock.
#pragma once

#include "context_view.h"
#include "window_cache.h"

#include "ucp_layout.h"

#include <memory>
#include <unordered_map>

namespace ucxl
{

struct memory_handle {
    ucp_context_h context; // null once the context was cleaned up
    ucp_mem_h memh;        // ends with its context
    const cached_window* window;
    const void* md; // the memory domain that stands for the context; the domain closes when the context is cleaned up
    unsigned users;
};

class memory_handles
{
public:
    // Adds a use, in a context that has windows. Writes *handle_p only with UCS_OK; UCP logged every other status.
    // Throws std::bad_alloc.
    ucs_status_t acquire(ucp_context_h context, const context_view& view, const cached_window& window,
                         memory_handle** handle_p);
    // Whether the context has a handle of the window, used or not.
    bool has_handle(ucp_context_h context, const cached_window& window) const
    {
        return _by_place.contains({context, &window});
    }
    // Removes a use. Cannot fail.
    void release(memory_handle* handle);
    // The window, which nobody uses, is being destroyed.
    void window_ends(const cached_window& window);
    // Releases handles in this context whose windows are gone.
    void release_orphans(ucp_context_h context);
    // Called when the context loses its last worker: releases its handles that nobody uses.
    void release_unused(const void* md);
    // Called when the memory domain closes, because its context is being cleaned up.
    void forget(const void* md);

private:
    struct place {
        ucp_context_h context;
        const cached_window* window;
        bool operator==(const place&) const = default;
    };
    struct place_hash {
        std::size_t operator()(const place& key) const
        {
            return std::hash<const void*>()(key.context) * 31 + std::hash<const void*>()(key.window);
        }
    };

    void unmap(memory_handle* handle);

    std::unordered_map<const memory_handle*, std::unique_ptr<memory_handle>> _all;
    std::unordered_map<place, memory_handle*, place_hash> _by_place; // handles whose contexts live
    // Handles that nobody uses, by the window that they show, and by the context if the window is gone.
    std::unordered_multimap<const void*, memory_handle*> _unused;
    std::unordered_multimap<const void*, memory_handle*> _orphans;
};

} // namespace ucxl
