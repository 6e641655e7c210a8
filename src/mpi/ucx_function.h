// The functions of UCX that this library stands before.
#pragma once

#include <dlfcn.h>

namespace ucxl::mpi
{

// UCX's own one. Null in a process without UCX.
template <typename Function>
Function* ucx_function(Function& /*own*/, const char* name)
{
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace ucxl::mpi
