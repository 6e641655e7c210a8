// Handles that are numbers, used once in the life of a process and never followed as pointers, so that a stale or
// foreign one is always detected.
//
//     const auto handle = numbered_handle<ucp_layout_window_h>(_last++);
#pragma once

#include <cstdint>

namespace ucxl
{

template <typename Handle>
Handle numbered_handle(std::uintptr_t number)
{
    constexpr std::uintptr_t step = 2; // odd numbers, so that no handle is the address of an object
    return reinterpret_cast<Handle>(number * step + 1);
}

} // namespace ucxl
