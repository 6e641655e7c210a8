// Counts the bytes that the CPU of this process copies from or to memory of the application. The program's memcpy and
// memmove stand in front of those of libc, for all libraries, so this counts what UCX does without asking UCX. What the
// software device copies in this process does not count.
//
// What UCX stores into a work request itself, by instructions, does not count either: short puts. So
// figures of plain memory are the least that is copied. Windows have no such gap: no instruction reads their addresses.
//
// UCX's own copy instructions would pass by: UCX_BUILTIN_MEMCPY_MIN=inf and UCX_NT_BUFFER_TRANSFER_MIN=inf turn them
// off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::bench
{

class copy_counter
{
public:
    // The memory of the application from now on.
    static void watch(std::span<std::byte* const> arrays, std::span<const std::size_t> lengths);

    // Counts between these two calls, on all threads.
    static void start();
    static std::uint64_t stop();
};

} // namespace ucxl::bench
