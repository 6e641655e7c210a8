#include "map_state.h"

#include "layout_table.h"
#include "numbered_handle.h"
#include "options.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/peer/export.h"
#include "window_figures.h"

#include "abi/log.h"
#include "sys/fork.h"
#include "sys/rollback.h"

#include <algorithm>

namespace ucxl
{

map_state::map_state() : cache(map_cache_size(), [this](const cached_window& window) { memory.window_ends(window); })
{
}

// Never destroyed: destructors that run later may clean up UCX contexts.
map_state& map_state::instance()
{
    static map_state& state = *[] {
        // Fork takes these locks after ours, as everybody else does.
        layout_table::instance();
        window_figures::instance();
        window_registry::hold_lock_over_fork();
        region_table::instance();
        hold_exports_over_fork();
        auto* created = new map_state;
        // A child forked while another thread maps must not inherit a held lock.
        hold_over_fork<[]() -> std::mutex& { return instance().lock; }>();
        // The next context may have the address of a closed one, and may lack our domain.
        on_md_close([](const void* md) {
            const std::lock_guard guard(instance().lock);
            instance().views.forget(md);
            instance().memory.forget(md);
        });
        on_last_interface_close([](const void* md) {
            const std::lock_guard guard(instance().lock);
            instance().memory.release_unused(md);
        });
        return created;
    }();
    return state;
}

memory_handle* window_user::memory_in(ucp_context_h wanted) const
{
    const auto found = std::ranges::find(memory, wanted, &memory_handle::context);
    return wanted == nullptr || found == memory.end() ? nullptr : *found;
}

ucp_layout_window_h map_state::add(window_user& user)
{
    const auto handle  = numbered_handle<ucp_layout_window_h>(_last_handle);
    window_user& added = _users.try_emplace(handle).first->second; // nothing fails from here on
    added              = std::move(user);
    added.handle       = handle;
    enter(added);
    ++_last_handle;
    return handle;
}

// The first one stays the first, so that whoever asks by an address gets the same handle as before.
void map_state::enter(window_user& user)
{
    window_user*& first = user.window->first_user;
    if (first == nullptr) {
        first = &user;
        user.window->target->set_name(reinterpret_cast<std::uintptr_t>(user.handle));
        return;
    }
    user.previous = first;
    user.next     = first->next;
    if (user.next != nullptr) {
        user.next->previous = &user;
    }
    first->next = &user;
}

void map_state::leave(const window_user& user)
{
    if (user.next != nullptr) {
        user.next->previous = user.previous;
    }
    if (user.previous != nullptr) {
        user.previous->next = user.next;
        return;
    }
    user.window->first_user = user.next;
    user.window->target->set_name(user.next != nullptr ? reinterpret_cast<std::uintptr_t>(user.next->handle) : 0);
}

ucp_layout_window_h map_state::find_by_address(const void* address, std::size_t length)
{
    const reader_section section;
    const window* const found = window_registry::instance().find(address, length);
    // What follows the last byte is no address of the window.
    const bool is_behind = found != nullptr && found->length() > 0 && address == found->address() + found->length();
    return found != nullptr && !is_behind ? reinterpret_cast<ucp_layout_window_h>(found->name()) : nullptr;
}

window_user* map_state::find(const char* function, ucp_layout_window_h handle)
{
    const auto found = _users.find(handle);
    if (found == _users.end()) {
        ucs_error("%s: window %p is no window handle, or was unmapped", function, static_cast<void*>(handle));
        return nullptr;
    }
    return &found->second;
}

result<void> map_state::complete_keys(const cached_window& window, ucp_context_h context, const context_view& view,
                                      key_choice choice)
{
    return may_have_keys(window.target->carrier()) && !memory.has_handle(context, window)
               ? make_keys(view, *window.target, choice)
               : result<void>();
}

ucs_status_t map_state::attach(window_user& user, ucp_context_h context, const context_view& view)
{
    user.memory.reserve(user.memory.size() + 1);
    memory_handle* handle = nullptr;
    if (const auto status = memory.acquire(context, view, *user.window, &handle); status != UCS_OK) {
        return status;
    }
    rollback undo([&] { memory.release(handle); });
    user.window->had_memory_handle = true;
    window_figures::instance().add(*user.window);
    user.memory.push_back(handle);
    undo.cancel();
    return UCS_OK;
}

void map_state::remove(ucp_layout_window_h handle)
{
    const auto user = _users.extract(handle);
    leave(user.mapped());
    release(user.mapped());
}

void map_state::release(const window_user& user)
{
    for (memory_handle* const used : user.memory) {
        memory.release(used);
    }
    cache.release(user.window);
    memory.release_orphans(user.context);
}

} // namespace ucxl
