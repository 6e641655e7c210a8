// Shared by the window tests.
#pragma once

#include "ucs/layout/build.h"

#include "abi/ucx.h"
#include "support/must.h"
#include "ucs/window/arena.h"
#include "ucs/window/window.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <unistd.h>

namespace ucxl::test
{

// Windows are announced to the UCX of the process.
inline const bool is_attached = abi::attach_libucs().has_value();

inline constexpr std::uint64_t mib = 1u << 20;

// A binding of `length` contiguous bytes. Nothing reads the memory in these tests unless they say so.
inline window_binding binding_of(std::uint64_t length, std::byte* base = nullptr)
{
    return {must(pack_plan::compile(must(make_contig(1, {.length = length})))), {base}};
}

inline std::unique_ptr<window_registry> private_registry(std::size_t length)
{
    return must(window_registry::create_private(length));
}

// Whether the CPU may read the byte, asked in a way that does not end the program.
inline bool is_readable(const void* address)
{
    int ends[2];
    if (pipe(ends) != 0) {
        ADD_FAILURE() << "no pipe";
        return false;
    }
    const bool readable = write(ends[1], address, 1) == 1;
    EXPECT_TRUE(readable || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return readable;
}

} // namespace ucxl::test
