// Copies of one block, inlined into every kernel. They touch only the bytes of the block: where its length is no
// multiple of a vector, two moves overlap inside it. `width` is the widest vector in bytes; the compiler splits vectors
// that the caller's instruction set lacks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ucxl
{

#define UCXL_INLINE [[gnu::always_inline]] inline

template <std::size_t size>
UCXL_INLINE void copy_vector(std::byte* __restrict to, const std::byte* __restrict from)
{
#ifdef __aarch64__
    // Two registers at a time, both read before one is written: the compiler makes a pair of loads and one of stores.
    if constexpr (size > 16) {
        using half [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = char;
        for (std::size_t at = 0; at < size; at += 32) {
            const half low                         = *reinterpret_cast<const half*>(from + at),
                       high                        = *reinterpret_cast<const half*>(from + at + 16);
            *reinterpret_cast<half*>(to + at)      = low;
            *reinterpret_cast<half*>(to + at + 16) = high;
        }
        return;
    }
#endif
    if constexpr (size >= 16) {
        using vector [[gnu::vector_size(size), gnu::aligned(1), gnu::may_alias]] = char;
        *reinterpret_cast<vector*>(to) = *reinterpret_cast<const vector*>(from);
    } else {
        std::memcpy(to, from, size);
    }
}

// The compiler knows the length.
template <std::size_t length, std::size_t width>
UCXL_INLINE void copy_fixed(std::byte* __restrict to, const std::byte* __restrict from)
{
    constexpr std::size_t step = std::min(std::bit_floor(length), width);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < length / step; ++i) {
        copy_vector<step>(to + i * step, from + i * step);
    }
    // One shorter move if it is enough; otherwise a move that overlaps the last one.
    constexpr std::size_t tail = length % step;
    if constexpr (std::has_single_bit(tail)) {
        copy_vector<tail>(to + length - tail, from + length - tail);
    } else if constexpr (tail > 0) {
        constexpr std::size_t over = std::bit_ceil(tail);
        copy_vector<over>(to + length - over, from + length - over);
    }
}

// (steps - 1) * width < length <= steps * width, steps >= 2
template <std::size_t steps, std::size_t width>
UCXL_INLINE void copy_steps(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
#pragma GCC unroll 32
    for (std::size_t i = 0; i + 1 < steps; ++i) {
        copy_vector<width>(to + i * width, from + i * width);
    }
    copy_vector<width>(to + length - width, from + length - width);
}

// size <= length <= 2 * size
template <std::size_t size, std::size_t width>
UCXL_INLINE void copy_ends(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
    copy_fixed<size, width>(to, from);
    copy_fixed<size, width>(to + length - size, from + length - size);
}

// length > 2 * width. All stores are aligned, except the first and the last.
template <std::size_t width>
UCXL_INLINE void copy_long(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
    copy_vector<width>(to, from);
    std::size_t at = width - reinterpret_cast<std::uintptr_t>(to) % width;
    for (; at + 4 * width < length; at += 4 * width) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i) {
            copy_vector<width>(to + at + i * width, from + at + i * width);
        }
    }
    for (; at + width < length; at += width) {
        copy_vector<width>(to + at, from + at);
    }
    copy_vector<width>(to + length - width, from + length - width);
}

inline constexpr std::size_t max_inline_length = 256;
// Up to this length memcpy gains nothing. Where it uses a string instruction for some KB, it is up to a quarter slower,
// and slower still into memory that another core has just read.
inline constexpr std::size_t max_long_length = 16384;

template <std::size_t width>
UCXL_INLINE void copy_any(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
{
    if (length > max_long_length) {
        std::memcpy(to, from, length);
    } else if (length > max_inline_length) {
        copy_long<width>(to, from, length);
    } else if (length > 128) {
        copy_ends<128, width>(to, from, length);
    } else if (length > 64) {
        copy_ends<64, width>(to, from, length);
    } else if (length > 32) {
        copy_ends<32, width>(to, from, length);
    } else if (length >= 16) {
        copy_ends<16, width>(to, from, length);
    } else if (length >= 8) {
        copy_ends<8, width>(to, from, length);
    } else if (length >= 4) {
        copy_ends<4, width>(to, from, length);
    } else if (length >= 2) {
        copy_ends<2, width>(to, from, length);
    } else if (length == 1) {
        *to = *from;
    }
}

} // namespace ucxl
