// The component `layout` and its memory domain: it tells stock UCP that window addresses are memory of type RDMA, and
// takes every registration, because a window needs none to be copied by the CPU.
//
// Invariant: mem_reg accepts whatever the domain advertises (UCP aborts otherwise); what is wrong with an address shows
// when it is used.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

#include <cstdint>

namespace ucxl
{

extern uct_component layout_component;

// An interface of lay_copy was opened on the domain.
void note_interface(uct_md_h md);

// Whether the ucp_init that this thread is in leaves lay_copy out (UCX_TLS): it closed the domain again without having
// used it. Nobody can copy windows then, and UCP could create no worker if other domains claimed that memory.
bool is_lay_copy_left_out();

// What the API layer can observe of the domain. UCP has no call that tells whether a context contains a given
// memory domain; but ucp_mem_map of a window calls its mem_reg in the calling thread if, and only if, it does (unless
// UCP finds the registration in its cache).
//
// Example:
//     const auto before = md_observer::registrations();
//     ucp_mem_map(context, &params, &memh);
//     if (md_observer::registrations() != before) { remember(context, md_observer::last_md()); }
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
