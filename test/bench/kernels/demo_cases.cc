// Shapes of the layouts that `contrib/dev demo` exchanges, where they are not among the other cases: sizes are part of
// them.
#include "kernel_cases.h"

#include "support/must.h"

#include "ucs/layout/build.h"

#include <cstring>
#include <memory>
#include <random>

namespace ucxl::bench
{

namespace
{

// outer x count blocks.
template <std::size_t block, std::size_t outer, std::size_t outer_stride, std::size_t count, std::size_t stride>
struct two_loops {
    [[gnu::noinline]] static void pack(std::byte* __restrict to, const std::byte* __restrict from)
    {
        for (std::size_t i = 0; i < outer; ++i) {
            for (std::size_t k = 0; k < count; ++k, to += block) {
                std::memcpy(to, from + i * outer_stride + k * stride, block);
            }
        }
    }

    [[gnu::noinline]] static void unpack(std::byte* __restrict to, const std::byte* __restrict from)
    {
        for (std::size_t i = 0; i < outer; ++i) {
            for (std::size_t k = 0; k < count; ++k, from += block) {
                std::memcpy(to + i * outer_stride + k * stride, from, block);
            }
        }
    }

    static kernel_case make(std::string name)
    {
        const dim places[] = {{outer, static_cast<std::int64_t>(outer_stride)},
                              {count, static_cast<std::int64_t>(stride)}};
        return {std::move(name),
                test::must(make_strided({.length = block}, places)),
                outer * outer_stride + count * stride,
                {0},
                pack,
                unpack};
    }
};

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
        const dim places[] = {{side, number}, {side, row}};
        return {"fft-transpose", test::must(make_strided({.length = number}, places)), side * row, {0}, pack, unpack};
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
                [=](std::byte* to, const std::byte* from) { all->pack(to, from); },
                [=](std::byte* to, const std::byte* from) { all->unpack(to, from); }};
    }
};

} // namespace

std::vector<kernel_case> demo_cases()
{
    return {two_loops<40, 1, 0, 162, 6560>::make("nas-lu-y"),
            two_loops<8, 1, 0, 1024, 8192>::make("column"),
            two_loops<8, 128, 135200, 128, 1040>::make("halo-x"),
            two_loops<12, 1, 0, 2860, 128>::make("wrf-x field"),
            two_loops<92, 3, 8320, 65, 128>::make("wrf-y field"),
            two_loops<8, 64, 8, 256, 8192>::make("panel of 64 columns"),
            two_loops<4, 32, 4, 512, 8192>::make("panel of 32 float columns"),
            transpose::make(),
            particles::make()};
}

} // namespace ucxl::bench
