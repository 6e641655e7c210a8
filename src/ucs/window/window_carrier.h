// What may carry the bytes of a window besides the CPU of its own process.
//
// UCX chooses per memory type, not per address. So each carrier has its own part of the arena and its own memory type
// (uct/abi/window_types.h).
#pragma once

#include <cstdint>

namespace ucxl
{

enum class window_carrier : std::uint8_t {
    keys,   // hardware keys, where a network card has them, or copies
    copies, // copies only: no network card ever registers the window
};

} // namespace ucxl
