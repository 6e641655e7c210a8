// What may carry the bytes of a window besides the CPU of its own process.
//
// UCX chooses per memory type, not per address. So each carrier has its own part of the arena and its own memory type
// (abi/window_types.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <ucs/memory/memory_type.h>

namespace ucxl
{

enum class window_carrier : std::uint8_t {
    keys,   // hardware keys, where a network card has them, or copies
    copies, // copies through a buffer: no network card ever registers the window
    direct, // copies, for which a peer of this host may reach the memory itself; no network card either
};

inline constexpr std::size_t num_window_carriers = 3;

// The memory types of the parts behind the first one, which is of type RDMA. Without a staged type there is no direct
// one.
struct part_types {
    std::optional<ucs_memory_type_t> staged{};
    std::optional<ucs_memory_type_t> direct{};
};

} // namespace ucxl
