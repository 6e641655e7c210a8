// The windows made by ucp_layout_map: which layout and bases they show, who uses them, and those nobody uses at the
// moment.
//
// A window is found again by content (layout and bases), whatever the handle of the layout, and shared. An unused
// window is kept, up to a limit (UCX_LAYOUT_MAP_CACHE_SIZE, oldest out first): it costs address space and some hundred
// bytes, and mapping the same thing again saves making it, and lets UCP's registration cache find its registration.
// Meanwhile its addresses and remote keys reach nothing: it is published again when it is mapped again.
// Windows with memory of their own are neither shared nor kept. An exclusive one is not found by content as long as it
// is used; unused, it is kept as any other.
//
// Not thread safe: the caller (map.cc) holds its lock.
#pragma once

#include "handle.h"
#include "ucs/window/window.h"

#include <list>
#include <memory>
#include <span>
#include <unordered_map>

namespace ucxl
{

struct cached_window {
    handle_ptr layout;
    window* view   = nullptr;
    unsigned users = 0;     // mappings; 0: on the idle list
    bool exclusive = false; // not in the index by content
    std::list<cached_window*>::iterator idle_position;

    bool has_own_memory() const { return view->binding().memory != nullptr; }
};

class window_cache
{
public:
    explicit window_cache(std::size_t max_idle) : _max_idle(max_idle) {}
    ~window_cache();

    // A window over memory of the caller, used once more; an exclusive one has that one user.
    result<cached_window*> acquire(ucp_layout& layout, std::span<void* const> bases, bool exclusive);
    // A window over new memory, used once.
    result<cached_window*> allocate(ucp_layout& layout);
    // The opposite of both.
    void release(cached_window* what);
    // Only for windows over memory of the caller with one user.
    result<void> rebind(cached_window& what, std::span<void* const> bases);

private:
    using owner_map     = std::unordered_map<const cached_window*, std::unique_ptr<cached_window>>;
    using content_index = std::unordered_multimap<std::uint64_t, cached_window*>;

    // make_view: from a pack_plan_ptr to a result<window*>.
    template <typename MakeView>
    result<cached_window*> create(ucp_layout& layout, MakeView&& make_view);
    // An unused one, or any.
    cached_window* find(const layout& of, std::span<void* const> bases, bool unused) const;
    result<cached_window*> create_indexed(ucp_layout& layout, std::span<void* const> bases, bool exclusive);
    void index(cached_window& what);
    void remove_from_index(const cached_window& what);
    content_index::const_iterator position(const cached_window& what) const;
    void destroy(cached_window* what);

    std::size_t _max_idle;
    owner_map _windows;
    content_index _by_content;
    std::list<cached_window*> _idle; // oldest first
};

} // namespace ucxl
