// Makes the components known to UCX. The constructor of libucp_layout.so does it (constructor.cc); a program that links
// the parts statically calls uct_layout_init() before its first ucp_init().
#pragma once

#include "sys/error.h"

namespace ucxl
{

// Registers the components, their transports and options, once. It leaves a UCX with another private interface alone:
// it logs one error, and uct_layout_status() returns the same error later.
void uct_layout_init();

// Errors: unsupported, with what was found and what is supported.
result<void> uct_layout_status();

} // namespace ucxl
