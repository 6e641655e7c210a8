#include "guarded.h"

#include "ucs/pack/kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace
{

using namespace ucxl;
using ucxl::test::guard_side;
using ucxl::test::guarded_memory;

struct shape {
    block_run run;
    std::int64_t low = 0; // of the first byte, from the first block
    std::size_t extent;

    explicit shape(const block_run& of) : run(of)
    {
        std::int64_t high = 0;
        each([&](std::int64_t at) {
            low  = std::min(low, at);
            high = std::max(high, at);
        });
        extent = static_cast<std::size_t>(high - low) + run.length;
    }

    template <typename Fn>
    void each(Fn&& fn) const
    {
        for (std::uint64_t row = 0; row < run.outer_count; ++row) {
            for (std::uint64_t i = 0; i < run.count; ++i) {
                fn(static_cast<std::int64_t>(row) * run.outer_stride + static_cast<std::int64_t>(i) * run.stride);
            }
        }
    }
};

void fill(std::span<std::byte> bytes, unsigned start)
{
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(start + i * 7 + i / 251);
    }
}

void check(const block_run& run, guard_side side)
{
    const shape of(run);
    const guarded_memory memory(of.extent, side), packed(run.packed_length(), side);
    std::byte* base = memory.data() - of.low;
    fill(memory.bytes(), 1);
    fill(packed.bytes(), 101);

    std::vector<std::byte> expected;
    of.each([&](std::int64_t at) { expected.insert(expected.end(), base + at, base + at + run.length); });
    const kernel_set& kernels = select_kernels(run);
    kernels.gather(packed.data(), base, run);
    ASSERT_TRUE(std::ranges::equal(expected, packed.bytes())) << "gather";

    fill(packed.bytes(), 77);
    std::vector<std::byte> image(memory.bytes().begin(), memory.bytes().end());
    std::size_t from = 0;
    of.each([&](std::int64_t at) {
        std::memcpy(image.data() + (at - of.low), packed.data() + from, run.length);
        from += run.length;
    });
    kernels.scatter(base, packed.data(), run);
    ASSERT_TRUE(std::ranges::equal(image, memory.bytes())) << "scatter";
}

void check_move(const block_run& run, std::int64_t other_stride)
{
    const shape to({.length = run.length, .count = run.count, .stride = other_stride}), from(run);
    const guarded_memory target(to.extent, guard_side::back), origin(from.extent, guard_side::front);
    fill(target.bytes(), 1);
    fill(origin.bytes(), 99);
    std::vector<std::byte> image(target.bytes().begin(), target.bytes().end());
    for (std::uint64_t i = 0; i < run.count; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        std::memcpy(image.data() + (at * other_stride - to.low), origin.data() + (at * run.stride - from.low),
                    run.length);
    }
    select_kernels(run).move(target.data() - to.low, other_stride, origin.data() - from.low, run.stride, run.count,
                             run.length);
    ASSERT_TRUE(std::ranges::equal(image, target.bytes()));
}

std::vector<std::uint64_t> lengths()
{
    std::vector<std::uint64_t> all(600);
    std::iota(all.begin(), all.end(), 1);
    all.insert(all.end(), {1000, 1024, 4096, 4097, 20000});
    return all;
}

class kernels : public testing::TestWithParam<guard_side>
{
};

TEST_P(kernels, every_length_moves_odd_counts_both_ways)
{
    for (const std::uint64_t length : lengths()) {
        for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 17}) {
            SCOPED_TRACE(testing::Message() << "length " << length << " count " << count);
            const auto near = static_cast<std::int64_t>(length + 1);
            ASSERT_NO_FATAL_FAILURE(check({.length = length, .count = count, .stride = near}, GetParam()));
        }
    }
}

TEST_P(kernels, negative_and_wide_strides_reach_every_block)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length * 2 + 13);
        ASSERT_NO_FATAL_FAILURE(check({.length = length, .count = 9, .stride = -wide}, GetParam()));
        ASSERT_NO_FATAL_FAILURE(check({.length = length, .count = 9, .stride = wide}, GetParam()));
    }
}

TEST_P(kernels, two_loops_follow_both_strides)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length + 5);
        ASSERT_NO_FATAL_FAILURE(
            check({.length = length, .count = 3, .stride = wide, .outer_count = 5, .outer_stride = 3 * wide + 11},
                  GetParam()));
        ASSERT_NO_FATAL_FAILURE(check(
            {.length = length, .count = 5, .stride = 3 * wide, .outer_count = 3, .outer_stride = -wide}, GetParam()));
    }
}

INSTANTIATE_TEST_SUITE_P(guard, kernels, testing::Values(guard_side::front, guard_side::back));

TEST(kernels, every_alignment_of_both_sides)
{
    for (const std::uint64_t length : {1, 3, 8, 12, 16, 24, 32, 48, 63, 64, 65, 100, 128, 256, 300, 1000}) {
        std::vector<std::byte> memory(4 * length + 5 * 64), packed(3 * length + 64), expected;
        fill(memory, 3);
        const block_run run{.length = length, .count = 3, .stride = static_cast<std::int64_t>(length + 9)};
        for (std::size_t from = 0; from < 64; ++from) {
            for (std::size_t to = 0; to < 64; ++to) {
                expected.clear();
                shape(run).each([&](std::int64_t at) {
                    const std::byte* block = memory.data() + from + at;
                    expected.insert(expected.end(), block, block + length);
                });
                select_kernels(run).gather(packed.data() + to, memory.data() + from, run);
                ASSERT_EQ(std::memcmp(expected.data(), packed.data() + to, 3 * length), 0)
                    << length << ' ' << from << ' ' << to;
            }
        }
    }
}

TEST(kernels, move_keeps_to_both_strides)
{
    for (const std::uint64_t length : lengths()) {
        SCOPED_TRACE(testing::Message() << "length " << length);
        const auto wide = static_cast<std::int64_t>(length + 3);
        ASSERT_NO_FATAL_FAILURE(check_move({.length = length, .count = 7, .stride = wide}, wide + 20));
        ASSERT_NO_FATAL_FAILURE(check_move({.length = length, .count = 6, .stride = -wide}, wide));
        ASSERT_NO_FATAL_FAILURE(check_move({.length = length, .count = 1, .stride = 0}, 0));
    }
}

TEST(kernels, tables_copy_every_length)
{
    for (const guard_side side : {guard_side::front, guard_side::back}) {
        for (std::uint32_t length = 0; length <= 700; ++length) {
            const guarded_memory memory(length, side), packed(length, side);
            fill(memory.bytes(), length);
            const table_row row{.offset = 40, .length = length, .source = 0};
            ASSERT_EQ(gather_table(packed.data(), memory.data() - 40, &row, 1), packed.data() + length);
            ASSERT_TRUE(std::ranges::equal(memory.bytes(), packed.bytes())) << length;
            fill(packed.bytes(), length + 1);
            ASSERT_EQ(scatter_table(memory.data() - 40, packed.data(), &row, 1), packed.data() + length);
            ASSERT_TRUE(std::ranges::equal(memory.bytes(), packed.bytes())) << length;
        }
    }
}

} // namespace
