// The component `layout` and its memory domain. It tells stock UCP that window addresses are memory of type RDMA. It
// accepts every registration, because the CPU copies a window without one.
//
// Invariant: mem_reg accepts everything the domain advertises, because UCP aborts otherwise. A wrong address fails when
// it is used.
#pragma once

#include "abi/component.h"

#include <cstdint>

namespace ucxl
{

extern abi::component layout_component;

// Record that an interface of lay_copy was opened on the domain, or is about to close.
void note_interface(uct_md_h md);
void note_interface_close(uct_md_h md);

// Whether interfaces are open on the domain, that is, whether the context has workers.
bool has_interfaces(const void* md);

// Whether the current ucp_init of this thread leaves lay_copy out (UCX_TLS): it closed the domain without using it.
// Nobody can copy windows then, and UCP could create no worker if other domains claimed that memory.
bool is_lay_copy_left_out();

// Calls `callback` whenever ucp_init asks for devices: all components of UCX are loaded, and the context has opened no
// domain yet. One callback, which throws nothing.
void on_device_query(void (*callback)());

// What the API layer can observe of the domain. No call of UCP tells whether a context contains a given memory domain.
// But ucp_mem_map of a window calls mem_reg of the domain in the calling thread if, and only if, the context contains
// it (unless UCP finds the registration in its cache).
//
// Example:
//     const auto before = md_observer::registrations();
//     ucp_mem_map(context, &params, &memh);
//     if (md_observer::registrations() != before) { remember(context, md_observer::last_md()); }
struct md_observer {
    // How often mem_reg of a `layout` domain has run in this thread.
    static std::uint64_t registrations();
    // The domain of the last such call, or null. Only for comparison: the domain may be closed.
    static const void* last_md();

    // The domain that this thread has opened since forget_opened() and that is still open, or null. After a ucp_init it
    // is that of the new context.
    static const void* opened_md();
    static void forget_opened();
};

// Calls `callback` whenever a `layout` memory domain is about to close, in the closing thread and with no lock held.
// The callback stays for the life of the process. Any thread; at most max_md_close_callbacks calls, further ones return
// false.
using md_close_callback                          = void (*)(const void* md);
inline constexpr unsigned max_md_close_callbacks = 8;
bool on_md_close(md_close_callback callback);

// The same, whenever the last interface of a domain closes. The context of the domain is still alive.
bool on_last_interface_close(md_close_callback callback);

} // namespace ucxl
