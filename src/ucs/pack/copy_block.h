// Copies of one block, inlined into every kernel. They touch the block's bytes only: a block that is no power of two is
// covered by two moves that overlap inside it.
#pragma once

#include <cstddef>
#include <cstring>

namespace ucxl
{

#define UCXL_INLINE [[gnu::always_inline]] inline

// length known to the compiler
template <std::size_t length>
UCXL_INLINE void copy_fixed(std::byte* __restrict to, const std::byte* __restrict from)
{
    std::memcpy(to, from, length);
}

// step < length <= steps * step
template <std::size_t step, std::size_t steps>
UCXL_INLINE void copy_steps(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
#pragma GCC unroll 16
    for (std::size_t i = 0; i + 1 < steps; ++i) {
        copy_fixed<step>(to + i * step, from + i * step);
    }
    copy_fixed<step>(to + length - step, from + length - step);
}

// size <= length <= 2 * size
template <std::size_t size>
UCXL_INLINE void copy_ends(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
    copy_fixed<size>(to, from);
    copy_fixed<size>(to + length - size, from + length - size);
}

UCXL_INLINE void copy_any(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
    if (length > 256) {
        std::memcpy(to, from, length);
    } else if (length > 128) {
        copy_ends<128>(to, from, length);
    } else if (length > 64) {
        copy_ends<64>(to, from, length);
    } else if (length > 32) {
        copy_ends<32>(to, from, length);
    } else if (length >= 16) {
        copy_ends<16>(to, from, length);
    } else if (length >= 8) {
        copy_ends<8>(to, from, length);
    } else if (length >= 4) {
        copy_ends<4>(to, from, length);
    } else if (length >= 2) {
        copy_ends<2>(to, from, length);
    } else if (length == 1) {
        *to = *from;
    }
}

} // namespace ucxl
