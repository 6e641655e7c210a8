// Whether an address is mapped, asked without touching it.
#pragma once

#include <cstddef>

#include <sys/mman.h>

namespace ucxl::test
{

inline bool is_mapped(const std::byte* page)
{
    return msync(const_cast<std::byte*>(page), 1, MS_ASYNC) == 0;
}

} // namespace ucxl::test
