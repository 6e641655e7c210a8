// System calls not by the C library's functions: UCX stands before these, to hear of memory that moves, and must not be
// called in a fork.
//
// Example: std::byte* const moved = to_memory(call(SYS_mremap, memory, length, length, MREMAP_MAYMOVE));
#pragma once

#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl::heap
{

template <typename... Arguments>
long call(long number, Arguments... arguments)
{
    return syscall(number, arguments...);
}

// Null for a call that failed.
inline std::byte* to_memory(long address)
{
    return address == -1 ? nullptr : reinterpret_cast<std::byte*>(address);
}

} // namespace ucxl::heap
