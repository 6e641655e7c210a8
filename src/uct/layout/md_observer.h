// What the API layer can observe of the memory domain `layout`. UCP has no call that tells whether a context contains a
// given memory domain; but ucp_mem_map of a window calls its mem_reg in the calling thread if, and only if, it does
// (unless UCP finds the registration in its cache).
//
// Example:
//     const auto before = md_observer::registrations();
//     ucp_mem_map(context, &params, &memh);
//     if (md_observer::registrations() != before) { remember(context, md_observer::last_md()); }
#pragma once

#include <cstdint>

namespace ucxl
{

struct md_observer {
    // How often mem_reg of a `layout` domain ran in this thread.
    static std::uint64_t registrations();
    // The domain it last ran for in this thread, or null. Only to be compared: the domain may be closed.
    static const void* last_md();
};

// Calls `callback` whenever a `layout` memory domain is about to close, in the closing thread and with no lock held.
// For the life of the process; callable from any thread, at most max_md_close_callbacks times (more are ignored and
// false is returned).
using md_close_callback                          = void (*)(const void* md);
inline constexpr unsigned max_md_close_callbacks = 8;
bool on_md_close(md_close_callback callback);

} // namespace ucxl
