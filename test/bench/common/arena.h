// Where a case is moved: packed bytes in one part of the memory, instances of its layout in the other. Hot moves the
// same ones again and again; cold goes through more than caches hold.
#pragma once

#include "layout_case.h"

#include <algorithm>
#include <chrono>

namespace ucxl::bench
{

inline constexpr std::size_t packed_length = std::size_t{320} << 20;
inline constexpr std::size_t memory_length = std::size_t{1100} << 20;
inline constexpr std::size_t arena_length  = packed_length + memory_length;

enum class way { pack, unpack };

struct arena {
    std::byte* packed;
    std::byte* memory;
    std::size_t packed_count = 1, packed_shift = 0, memory_count = 1;
    const layout_case* of;

    arena(std::byte* begin, const layout_case& moved, bool cold)
        : packed(begin), memory(begin + packed_length), of(&moved)
    {
        constexpr std::size_t not_cached = std::size_t{256} << 20, page = 4096;
        if (cold) {
            packed_shift = (of->length + page - 1) / page * page;
            packed_count = std::clamp<std::size_t>(not_cached / packed_shift + 1, 1, packed_length / packed_shift);
            memory_count = not_cached / of->touched + 2;
            while (memory_count > 1 && of->instance(memory_count - 1) + of->extent > memory_length) {
                --memory_count;
            }
        }
    }

    std::byte* packed_at(std::size_t i) const { return packed + i % packed_count * packed_shift; }
    std::byte* memory_at(std::size_t i) const { return memory + of->instance(i % memory_count); }

    template <typename Fn>
    void move(way direction, std::size_t i, Fn&& fn) const
    {
        if (direction == way::pack) {
            fn(packed_at(i), memory_at(i));
        } else {
            fn(memory_at(i), packed_at(i));
        }
    }

    // Seconds of `times` moves from the one numbered `first` on; fn(to, from). Hot: after one more, so that what others
    // left in the caches does not count.
    template <typename Fn>
    double seconds(way direction, std::size_t first, unsigned times, Fn&& fn) const
    {
        if (packed_shift == 0) {
            move(direction, 0, fn);
        }
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t i = first; i < first + times; ++i) {
            move(direction, i, fn);
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
};

} // namespace ucxl::bench
