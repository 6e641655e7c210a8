// The stock memory handles of windows: one per window and UCP context, counted.
//
// A context that is cleaned up before its handles are given back takes them along, as UCP has it: what is left of them
// then names no context. So a handle of ours is safe to release at any time.
//
// Not thread safe: the caller (map_state.h) holds its lock.
#pragma once

#include "window_cache.h"

#include "ucp_layout.h"

#include <memory>
#include <unordered_map>

namespace ucxl
{

struct memory_handle {
    ucp_context_h context; // null once it was cleaned up
    ucp_mem_h memh;        // gone with its context
    const cached_window* window;
    const void* md; // memory domain of the context that stands for it: closed means cleaned up
    unsigned users;
};

class memory_handles
{
public:
    // One use more. *handle_p is written only with UCS_OK; whatever else is returned was logged. Throws std::bad_alloc.
    ucs_status_t acquire(const char* function, ucp_context_h context, const cached_window& window,
                         memory_handle** handle_p);
    // One use less. No error.
    void release(memory_handle* handle);
    // The memory domain closes: its context is being cleaned up.
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

    ucs_status_t check_md(const char* function, ucp_context_h context, std::uint64_t registrations_before);

    std::unordered_map<const memory_handle*, std::unique_ptr<memory_handle>> _all;
    std::unordered_map<place, memory_handle*, place_hash> _by_place; // whose contexts live
    // Contexts seen to have our memory domain, with that domain: in them a memory registration of a window may be found
    // in UCP's cache.
    std::unordered_map<ucp_context_h, const void*> _md_of_context;
};

} // namespace ucxl
