// Who carries a window, and why: decided once, before the window exists.
//
// A window with hardware keys has them planned by then: its layout is lowered for each device of the context, and its
// memory is registered there. Binding them needs the address of the window; if that fails, the window is made again as
// a copied one, before anybody has seen the address.
//
// Example: auto decided = UCXL_TRY(decide(view, {plan, bases})); window* const made = UCXL_TRY(create(decided));
#pragma once

#include "context_view.h"
#include "ucs/window/window.h"
#include "ucs/window/window_keys.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ucxl
{

struct cached_window;

struct decision {
    window_binding binding; // complete; create() takes it
    window_carrier carrier = window_carrier::undecided;
    std::unique_ptr<planned_keys> keys; // with window_carrier::keys
    std::string why_copied;             // although there are devices; else empty
    bool may_change    = false;         // what went wrong may go well next time
    std::uint64_t view = 0;             // the number of that of the context
};

// The part that makes hardware keys, if a domain of the context has some; or null.
window_keys* keys_in(const context_view& view);

// Of a new window that shows the bases to users in this context, or in none. Errors: as window_registry::create().
// Throws std::bad_alloc.
result<decision> decide(const context_view& view, window_binding binding);
// Makes the window with its keys. The decision is then what became of it. Errors: as window_registry::create(). Throws
// std::bad_alloc.
result<window*> create(decision& decided);

// Makes the keys that an existing window lacks in the context. Errors: why it has to be copied there. Throws
// std::bad_alloc.
result<void> make_keys(const context_view& view, const window& window, key_choice choice);
// As the user wants it (UCX_LAYOUT_KEYS_WINDOWS).
key_choice wanted_choice();

// At present. Throws std::bad_alloc.
window_carrier carrier_of(const cached_window& cached);
// Why it has no key, as text for people. Throws std::bad_alloc.
std::string why_no_key(const cached_window& cached);

} // namespace ucxl
