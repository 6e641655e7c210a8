// What a packed key of a window carries besides the key. UCX's packed keys of mlx5 have two halves: the key for puts
// and gets, and another one for atomics, or "none". A window needs one key for both. So the second half of a window's
// packed key names the host. It has the value of a key whose index is 0xff0000 or more. Where UCX's key for atomics has
// such an index, it is not handed out. That of a peer without this library is taken for a mark, and not used, either:
// UCX then does atomic operations by the key for puts and gets. A peer that happens to name this host by it, one of
// 2^24, may count as unreachable.
//
// A peer without this library takes the mark for an atomic key. Its puts and gets work, its atomics fail.
#pragma once

#include <cstdint>
#include <optional>

namespace ucxl::mlx5
{

inline constexpr std::uint32_t no_key    = 0xffffffff;
inline constexpr std::uint32_t mark_bits = 0xff000000;
inline constexpr std::uint32_t host_mask = 0x00ffffff;
inline constexpr std::uint32_t no_host   = host_mask - 1; // of a key that nobody may use
inline constexpr std::uint32_t max_host  = host_mask - 2; // all ones would make no_key

constexpr std::uint64_t marked_key(std::uint32_t key, std::uint32_t host)
{
    return std::uint64_t{mark_bits | host} << 32 | key;
}

// The host of the window that the packed key belongs to; nothing for other keys.
constexpr std::optional<std::uint32_t> host_of(std::uint64_t packed)
{
    const auto second = static_cast<std::uint32_t>(packed >> 32);
    return (second & mark_bits) == mark_bits && second != no_key ? std::optional(second & host_mask) : std::nullopt;
}

// The key as UCX packs it.
constexpr std::uint64_t unmarked_key(std::uint64_t packed)
{
    return std::uint64_t{no_key} << 32 | (packed & no_key);
}

// A number for this host, the same in all its processes until it boots again; 0 to max_host.
std::uint32_t this_host();

} // namespace ucxl::mlx5
