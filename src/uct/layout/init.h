// Making the component known to UCX. libucp_layout.so does it in its constructor (constructor.cc); a program that links
// the parts statically calls it before its first ucp_init().
#pragma once

namespace ucxl
{

// Registers the component `layout`, its transport and its options, once. An UCX whose private interface is another one is
// left alone; one error is logged, and abi_check() tells the same to who asks later.
void uct_layout_init();

} // namespace ucxl
