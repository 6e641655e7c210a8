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

// Calls `callback` whenever a `layout` memory domain is about to close, in the closing thread and with no lock held.
// The callback stays for the life of the process. Any thread; at most max_md_close_callbacks calls, further ones return
// false.
using md_close_callback                          = void (*)(const void* md);
inline constexpr unsigned max_md_close_callbacks = 8;
bool on_md_close(md_close_callback callback);

// The same, whenever the last interface of a domain closes. The context of the domain is still alive.
bool on_last_interface_close(md_close_callback callback);

} // namespace ucxl
