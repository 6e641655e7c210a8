// Makes the components known to UCX. libucp_layout.so does it when it is loaded, or when UCX is (ucp/layout/load.cc); a
// program that links the parts statically calls uct_layout_init() before its first ucp_init().
#pragma once

#include "sys/error.h"

namespace ucxl
{

// Binds to the UCX of this process and registers the components, their transports and options there, once. `caller` is
// an address in the code that uses UCX, or null; it decides if the process has several. Later calls return the same.
// Errors: no_device if there is no UCX yet (a later call tries again); unsupported, with what was found and what to do,
// which is also logged, once. UCX is then left alone.
result<void> uct_layout_init(const void* caller = nullptr);

} // namespace ucxl
