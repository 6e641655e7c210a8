#include "kernel_cases.h"

#include "bench/common/hand_loops.h"
#include "bench/common/tree_layout.h"
#include "support/must.h"

#include "ucs/layout/build.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

namespace ucxl::bench
{

namespace
{

// One at least.
std::size_t times(std::size_t payload, std::size_t length)
{
    return std::max<std::size_t>(payload / length, 1);
}

kernel_case one_array(const layout_case& of, const char* name = nullptr)
{
    return {name != nullptr ? name : of.name, layout_of(*of.type), of.extent, {0}, of.hand};
}

kernel_case blocks(std::string name, const two_loops& loops)
{
    return one_array(blocks_case(std::move(name), loops, loops.length % 8 == 0 ? 8 : 4));
}

kernel_case vector_case(std::size_t payload, std::size_t length, std::size_t stride)
{
    return blocks(std::to_string(length) + " of " + std::to_string(stride),
                  {1, 0, times(payload, length), stride, length});
}

// As many rows as fit into 64 MB.
kernel_case matrix_columns(std::size_t payload, std::size_t columns)
{
    constexpr std::size_t width = 1024, max_rows = 8192;
    layout_case made = columns_case(std::clamp<std::size_t>(payload / 8 / columns, 1, max_rows), width, columns);
    made.name        = columns == 1 ? "matrix column" : std::to_string(columns) + " matrix columns";
    return one_array(made);
}

// Three arrays, packed as vertices: the hand loop of vertices the other way round.
kernel_case interleaved_case(std::size_t payload)
{
    const std::size_t count = times(payload, 32);
    const dim dims[]        = {{count * 3, 4}, {count * 3, 4}, {count * 2, 4}};
    const std::span<const dim> all(dims);
    const interleaved_part parts[] = {{0, 0, {.length = 4}, 3, all.subspan(0, 1)},
                                      {1, 0, {.length = 4}, 3, all.subspan(1, 1)},
                                      {2, 0, {.length = 4}, 2, all.subspan(2, 1)}};
    return {"arrays interleaved 3:3:2",
            test::must(make_interleaved(parts)),
            count * 32,
            {0, 12 * count, 24 * count},
            {[=](std::byte* to, const std::byte* from) { vertices{count}.unpack(to, from); },
             [=](std::byte* to, const std::byte* from) { vertices{count}.pack(to, from); }}};
}

// 128 x 128 complex doubles, row by row in memory 32 KB apart, column by column packed.
struct transpose {
    static constexpr std::size_t side = 128, number = 16, row = 32768, square = 8;

    // fn(place in memory, place in the packed bytes), in squares, so that both sides use whole cache lines
    template <typename Fn>
    static void each(Fn&& fn)
    {
        for (std::size_t r0 = 0; r0 < side; r0 += square) {
            for (std::size_t c0 = 0; c0 < side; c0 += square) {
                for (std::size_t column = c0; column < c0 + square; ++column) {
                    for (std::size_t r = r0; r < r0 + square; ++r) {
                        fn(column * row + r * number, (r * side + column) * number);
                    }
                }
            }
        }
    }

    [[gnu::noinline]] static void pack(std::byte* __restrict to, const std::byte* __restrict from)
    {
        each([=](std::size_t memory, std::size_t packed) { std::memcpy(to + packed, from + memory, number); });
    }

    [[gnu::noinline]] static void unpack(std::byte* __restrict to, const std::byte* __restrict from)
    {
        each([=](std::size_t memory, std::size_t packed) { std::memcpy(to + memory, from + packed, number); });
    }

    static kernel_case make()
    {
        kernel_case made = blocks("fft-transpose", {side, number, side, row, number});
        made.hand        = {pack, unpack};
        return made;
    }
};

// Particles of an index list: a position of 24 bytes and five numbers each, attribute after attribute. The hand loop
// packs particle after particle, which the layout cannot say.
struct particles {
    static constexpr std::size_t local = 3534, border = 3062, numbers = 5;
    std::vector<std::uint32_t> list;

    static std::size_t array(std::size_t number) { return local * (24 + 8 * number); }

    void pack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        std::byte* position = to;
        for (std::size_t i = 0; i < border; ++i) {
            std::memcpy(position + i * 24, from + list[i] * 24, 24);
        }
        for (std::size_t number = 0; number < numbers; ++number) {
            for (std::size_t i = 0; i < border; ++i) {
                std::memcpy(to + border * (24 + 8 * number) + i * 8, from + array(number) + list[i] * 8, 8);
            }
        }
    }

    void unpack(std::byte* __restrict to, const std::byte* __restrict from) const
    {
        for (std::size_t i = 0; i < border; ++i) {
            std::memcpy(to + list[i] * 24, from + i * 24, 24);
        }
        for (std::size_t number = 0; number < numbers; ++number) {
            for (std::size_t i = 0; i < border; ++i) {
                std::memcpy(to + array(number) + list[i] * 8, from + border * (24 + 8 * number) + i * 8, 8);
            }
        }
    }

    static kernel_case make()
    {
        auto all = std::make_shared<particles>();
        all->list.resize(local);
        for (std::uint32_t i = 0; i < local; ++i) {
            all->list[i] = i;
        }
        std::mt19937 random(2012); // the same case in every run
        for (std::size_t i = local; i > 1; --i) {
            std::swap(all->list[i - 1], all->list[random() % i]);
        }
        all->list.resize(border);
        std::vector<iov_part> parts;
        std::vector<std::size_t> bases{0};
        for (const std::uint32_t particle : all->list) {
            parts.push_back({0, static_cast<std::int64_t>(particle) * 24, {.length = 24}});
        }
        for (std::uint32_t number = 0; number < numbers; ++number) {
            bases.push_back(array(number));
            for (const std::uint32_t particle : all->list) {
                parts.push_back({number + 1, static_cast<std::int64_t>(particle) * 8, {.length = 8}});
            }
        }
        return {"lammps-full",
                test::must(make_iov(parts)),
                array(numbers),
                bases,
                {[=](std::byte* to, const std::byte* from) { all->pack(to, from); },
                 [=](std::byte* to, const std::byte* from) { all->unpack(to, from); }}};
    }
};

} // namespace

std::vector<kernel_case> kernel_cases(std::size_t payload)
{
    return {vector_case(payload, 8, 32),
            vector_case(payload, 12, 32),
            vector_case(payload, 16, 64),
            vector_case(payload, 32, 64),
            vector_case(payload, 64, 128),
            vector_case(payload, 100, 160),
            vector_case(payload, 256, 512),
            vector_case(payload, 4096, 8192),
            blocks("tile of 256 doubles", {1, 0, times(payload, 2048), 32768, 2048}),
            matrix_columns(payload, 1),
            matrix_columns(payload, 512),
            one_array(vertices_case(times(payload, 32)), "vertices to arrays"),
            interleaved_case(payload),
            one_array(records_case(times(payload, 56))),
            one_array(list_case(times(payload, 132), false, 8)),
            one_array(list_case(times(payload, 132), true, 8))};
}

std::vector<kernel_case> demo_cases()
{
    return {blocks("nas-lu-y", {1, 0, 162, 6560, 40}),
            blocks("column", {1, 0, 1024, 8192, 8}),
            blocks("halo-x", {128, 135200, 128, 1040, 8}),
            blocks("wrf-x field", {1, 0, 2860, 128, 12}),
            blocks("wrf-y field", {3, 8320, 65, 128, 92}),
            blocks("panel of 64 columns", {64, 8, 256, 8192, 8}),
            blocks("panel of 32 float columns", {32, 4, 512, 8192, 4}),
            transpose::make(),
            particles::make()};
}

} // namespace ucxl::bench
