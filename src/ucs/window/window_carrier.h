// Who carries the bytes of a window. The words are those of the public header (ucp_layout_carrier_t), with its numbers.
//
// UCX chooses per memory type, not per address. So copied windows have parts of the arena of their own, of other memory
// types than the rest (abi/window_types.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <ucs/memory/memory_type.h>

namespace ucxl
{

enum class window_carrier : std::uint8_t {
    undecided, // the CPU, until a context with network cards has the window registered
    keys,      // network cards, by hardware keys
    copies,    // copies through a buffer: no network card ever registers the window
    direct,    // copies, for which a peer of this host may reach the memory itself; no network card either
};

// The parts of the arena: what network cards may register, and one for each of the last two.
inline constexpr std::size_t num_window_parts = 3;

constexpr std::size_t part_of(window_carrier carrier)
{
    return carrier <= window_carrier::keys ? 0 : static_cast<std::size_t>(carrier) - 1;
}

constexpr bool may_have_keys(window_carrier carrier)
{
    return part_of(carrier) == 0;
}

// The memory types of the parts behind the first one, which is of type RDMA. Without a staged type there is no direct
// one.
struct part_types {
    std::optional<ucs_memory_type_t> staged{};
    std::optional<ucs_memory_type_t> direct{};
};

} // namespace ucxl
