// Making the component known to UCX. libucp_layout.so does it in its constructor (constructor.cc); a program that links
// the parts statically calls it before its first ucp_init().
#pragma once

#include "sys/error.h"

namespace ucxl
{

// Registers the components `layout` and `lay_shm`, their transports and options, once. An UCX whose private interface
// is another one is left alone; one error is logged, and uct_layout_status() tells the same to who asks later.
void uct_layout_init();

// Errors: unsupported, with what was found and what is supported.
result<void> uct_layout_status();

} // namespace ucxl
