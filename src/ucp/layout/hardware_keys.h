// Hardware keys for windows, from the library that makes them. It is opened when UCX is about to open its domains and
// has a component for RDMA devices, so that a process without devices needs nothing.
//
// Example: if (window_keys* const keys = hardware_keys()) { keys->suspend(address); }
#pragma once

#include "context_view.h"
#include "ucs/window/window.h"
#include "ucs/window/window_keys.h"

#include <string>

namespace ucxl
{

// Arranges that the library is opened. To be called once, before the first ucp_init.
void watch_for_devices();

// Null if there is none; also before the first ucp_init. Any thread.
window_keys* hardware_keys();

// Whether a context of this process has, or had, a device that may make keys.
bool was_device_opened();

// What a key of the window has to show. Throws std::bad_alloc.
window_content content_of(const window& window);

// Makes the hardware keys of a window in all domains of a context that make some. Nothing to do without such domains.
// Errors: why the window has to be copied. Throws std::bad_alloc.
result<void> make_keys(const context_view& view, const window& window, key_choice choice);

// Why there is none, in words; empty if there is one.
std::string why_no_hardware_keys();

} // namespace ucxl
