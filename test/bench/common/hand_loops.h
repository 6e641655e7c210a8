// Loops that a programmer would write by hand: block sizes known to the compiler, or one memcpy per block; and how far
// intrinsics get. std only.
#pragma once

#include "streaming.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ucxl::bench
{

// blocks of `length` bytes in two loops; 0: known when it runs only
struct two_loops {
    std::size_t outer, outer_stride, count, stride, length;

    template <std::size_t known>
    [[gnu::noinline]] void pack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        const std::size_t size = known > 0 ? known : length;
        for (std::size_t row = 0; row < outer; ++row) {
            for (std::size_t i = 0; i < count; ++i) {
                std::memcpy(to, from + row * outer_stride + i * stride, size);
                to += size;
            }
        }
    }

    template <std::size_t known>
    [[gnu::noinline]] void unpack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        const std::size_t size = known > 0 ? known : length;
        for (std::size_t row = 0; row < outer; ++row) {
            for (std::size_t i = 0; i < count; ++i) {
                std::memcpy(to + row * outer_stride + i * stride, from, size);
                from += size;
            }
        }
    }

    // Non-temporal; lengths, strides and addresses are multiples of 64.
    [[gnu::noinline]] void pack_streaming(std::byte* to, const std::byte* from) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            stream(to + i * length, from + i * stride, length);
        }
        stream_fence();
    }

    [[gnu::noinline]] void unpack_streaming(std::byte* to, const std::byte* from) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            stream(to + i * stride, from + i * length, length);
        }
        stream_fence();
    }
};

// Columns of doubles in squares of 8 x 8, so that both sides use whole cache lines; rows are a multiple of 64.
struct squares {
    std::size_t columns, rows, stride;

    // fn(place in memory, place in the packed bytes)
    template <typename Fn>
    void each(Fn&& fn) const
    {
        for (std::size_t row0 = 0; row0 < rows; row0 += 64) {
            for (std::size_t column = 0; column < columns; column += 8) {
                for (std::size_t row = row0; row < row0 + 64; row += 8) {
                    fn(row * stride + column * 8, (column * rows + row) * 8);
                }
            }
        }
    }

    // Through registers.
    static void square(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride)
    {
        std::uint64_t in[8][8], out[8][8];
        for (std::size_t i = 0; i < 8; ++i) {
            std::memcpy(in[i], from + i * from_stride, 64);
        }
        for (std::size_t i = 0; i < 8; ++i) {
            for (std::size_t k = 0; k < 8; ++k) {
                out[i][k] = in[k][i];
            }
            std::memcpy(to + i * to_stride, out[i], 64);
        }
    }

    [[gnu::noinline]] void pack(std::byte* to, const std::byte* from) const
    {
        each([&](std::size_t memory, std::size_t packed) { square(to + packed, rows * 8, from + memory, stride); });
    }

    [[gnu::noinline]] void unpack(std::byte* to, const std::byte* from) const
    {
        each([&](std::size_t memory, std::size_t packed) { square(to + memory, stride, from + packed, rows * 8); });
    }
};

// An array of {3, 3, 2 floats} packed as three arrays.
struct vertices {
    std::size_t count;

    [[gnu::noinline]] void pack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(to + 12 * i, from + 32 * i, 12);
            std::memcpy(to + 12 * count + 12 * i, from + 32 * i + 12, 12);
            std::memcpy(to + 24 * count + 8 * i, from + 32 * i + 24, 8);
        }
    }

    [[gnu::noinline]] void unpack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(to + 32 * i, from + 12 * i, 12);
            std::memcpy(to + 32 * i + 12, from + 12 * count + 12 * i, 12);
            std::memcpy(to + 32 * i + 24, from + 24 * count + 8 * i, 8);
        }
    }
};

// Two of four records of 48 bytes, of each 28 bytes in three fields.
struct records {
    std::size_t count;

    [[gnu::noinline]] void pack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        for (std::size_t i = 0; i < count * 2; ++i, to += 28) {
            const std::byte* at = from + i / 2 * 192 + i % 2 * 48;
            std::memcpy(to, at, 8);
            std::memcpy(to + 8, at + 16, 12);
            std::memcpy(to + 20, at + 32, 8);
        }
    }

    [[gnu::noinline]] void unpack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        for (std::size_t i = 0; i < count * 2; ++i, from += 28) {
            std::byte* at = to + i / 2 * 192 + i % 2 * 48;
            std::memcpy(at, from, 8);
            std::memcpy(at + 16, from + 8, 12);
            std::memcpy(at + 32, from + 20, 8);
        }
    }
};

// Lengths are multiples of 8, which this loop knows and the layout does not say.
struct block_list {
    struct block {
        std::size_t offset, length;
    };
    std::vector<block> blocks;

    static void words(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
    {
        std::size_t done = 0;
        for (; done + 32 <= length; done += 32) {
            std::memcpy(to + done, from + done, 32);
        }
        for (; done < length; done += 8) {
            std::memcpy(to + done, from + done, 8);
        }
    }

    [[gnu::noinline]] void pack(std::byte* to, const std::byte* from) const
    {
        for (const block& at : blocks) {
            words(to, from + at.offset, at.length);
            to += at.length;
        }
    }

    [[gnu::noinline]] void unpack(std::byte* to, const std::byte* from) const
    {
        for (const block& at : blocks) {
            words(to + at.offset, from, at.length);
            from += at.length;
        }
    }

    [[gnu::noinline]] void pack_by_memcpy(std::byte* to, const std::byte* from) const
    {
        for (const block& at : blocks) {
            std::memcpy(to, from + at.offset, at.length);
            to += at.length;
        }
    }

    [[gnu::noinline]] void unpack_by_memcpy(std::byte* to, const std::byte* from) const
    {
        for (const block& at : blocks) {
            std::memcpy(to + at.offset, from, at.length);
            from += at.length;
        }
    }
};

} // namespace ucxl::bench
