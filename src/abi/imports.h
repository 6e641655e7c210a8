// The functions of UCX that this library calls. It is not linked with any UCX, because it may be loaded into programs
// with different ones. In the shared libraries each of these names is a jump through a pointer that bind_imports()
// fills in. Programs that link the parts of the library statically are linked with UCX, and have no bind_imports().
#pragma once

namespace ucxl::abi
{

// `library` is a handle of dlopen. Calling a function that is not bound returns UCS_ERR_NO_DEVICE.
[[gnu::weak]] void bind_imports(void* library);

} // namespace ucxl::abi
