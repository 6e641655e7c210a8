// Hardware keys for windows, from the library that makes them. It is opened when UCX is about to open its domains and
// has a component for RDMA devices, so that a process without devices needs nothing.
//
// Example: if (window_keys* const keys = hardware_keys()) { keys->suspend(address); }
#pragma once

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

// What a key of the window has to show; that of a binding belongs to no window yet. Throws std::bad_alloc.
window_content content_of(const window& window);
window_content content_of(const window_binding& binding);

// Why there is none, in words; empty if there is one.
std::string why_no_hardware_keys();

} // namespace ucxl
