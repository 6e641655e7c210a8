// The UCX that this library works with. One is found, checked and kept for the life of the process; its functions are
// bound at that moment, because the library is not linked with any UCX.
//
// Example:
//     UCXL_TRY(attach(nullptr));
//     if (attached()->asks_memory_types) { ... }
#pragma once

#include "form.h"

namespace ucxl::abi
{

// Finds the UCX of this process and binds to it, once; later calls return the same. `caller` is an address in the code
// that uses UCX, or null; it decides if there are several. Any thread.
// Errors: no_device if no UCX is loaded yet (a later call tries again); unsupported if it is not one that we know.
result<const form*> attach(const void* caller);

// For libraries that need libucs only: binds to the libucs of this process, or loads one.
// Errors: no_device.
result<void> attach_libucs();

// The form of the UCX that attach() found, or null.
const form* attached();

// The file of the libucp that attach() found.
const std::string& attached_file();

// The symbol in the UCX that was found, or null.
void* find_symbol(const char* name);

template <typename T>
T* find_object(const char* name)
{
    return static_cast<T*>(find_symbol(name));
}

template <typename Function>
Function find_function(const char* name)
{
    return reinterpret_cast<Function>(find_symbol(name));
}

} // namespace ucxl::abi
