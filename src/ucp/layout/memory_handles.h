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

#include "hardware_keys.h"
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
    // Adds a use. Writes *handle_p only with UCS_OK; every other status was logged. Throws std::bad_alloc.
    ucs_status_t acquire(const char* function, ucp_context_h context, const cached_window& window,
                         memory_handle** handle_p);
    // The context was made with this memory domain of ours. Throws std::bad_alloc.
    void note_domain(ucp_context_h context, const void* md) { _md_of_context[context] = md; }
    // Whether the context has our memory domain, and so windows.
    bool has_windows(ucp_context_h context);
    // The domains of the context that make hardware keys; none without devices. Throws std::bad_alloc.
    std::span<const window_keys::domain_id> key_domains(ucp_context_h context);
    // Makes the hardware keys of a window in all domains of the context, before acquire(). Nothing to do without such
    // domains. Errors: why the window has to be copied. Throws std::bad_alloc.
    result<void> make_keys(ucp_context_h context, const window& window, key_choice choice);
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
    static bool ask_domains(ucp_context_h context);
    static bool find_key_domains(ucp_context_h context, std::vector<window_keys::domain_id>& domains);
    ucs_status_t check_md(const char* function, ucp_context_h context, std::uint64_t registrations_before);

    std::unordered_map<const memory_handle*, std::unique_ptr<memory_handle>> _all;
    std::unordered_map<place, memory_handle*, place_hash> _by_place; // handles whose contexts live
    // Handles that nobody uses, by the window that they show, and by the context if the window is gone.
    std::unordered_multimap<const void*, memory_handle*> _unused;
    std::unordered_multimap<const void*, memory_handle*> _orphans;
    // The contexts known to have our memory domain, with that domain. In them UCP may find the registration of a window
    // in its cache.
    std::unordered_map<ucp_context_h, const void*> _md_of_context;
    // The domains that make hardware keys, of the contexts that were asked.
    struct key_domains_of_context {
        const void* md; // as in memory_handle
        std::vector<window_keys::domain_id> domains;
    };
    std::unordered_map<ucp_context_h, key_domains_of_context> _key_domains;
};

} // namespace ucxl
