// Which memory is registered for a window, against the layout's bytes one by one.
#include "uct/ib/mlx5/domain/memory_pieces.h"

#include "support/must.h"
#include "support/property.h"
#include "support/random_spec.h"
#include "ucs/layout/build.h"
#include "ucs/layout/walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace
{

using namespace ucxl;
using namespace ucxl::mlx5;
using test::must;

std::vector<std::uintptr_t> addresses_of(const layout& layout, std::span<const std::uintptr_t> origins)
{
    std::vector<std::uintptr_t> all;
    for_each_block(layout, 0, layout.packed_length(), [&](const placed_block& block) {
        for (std::uint64_t i = 0; i < block.length; ++i) {
            all.push_back(origins[block.source] + static_cast<std::uint64_t>(block.offset) + i);
        }
    });
    return all;
}

struct placed_layout {
    layout_ptr shape;
    std::vector<std::byte*> bases;
    std::vector<std::uintptr_t> origins;
};

// Sources near each other, overlapping, or far apart.
placed_layout place(test::random& random, const layout_ptr& shape)
{
    placed_layout placed{.shape = shape, .bases = {}, .origins = {}};
    std::uintptr_t next = std::uintptr_t{1} << 40;
    for (std::uint32_t source = 0; source < shape->num_sources(); ++source) {
        constexpr std::uint64_t steps[] = {0, 64, 4096, (1 << 20) - 64, 1 << 20, 3 << 20, std::uint64_t{1} << 34};
        next += steps[random.below(std::size(steps))] + random.below(100);
        placed.origins.push_back(next);
        placed.bases.push_back(reinterpret_cast<std::byte*>(next));
    }
    return placed;
}

void expect_same_bytes(const placed_layout& placed, const memory_pieces& pieces)
{
    ASSERT_EQ(pieces.origins.size(), pieces.ranges.size());
    ASSERT_EQ(pieces.shape->packed_length(), placed.shape->packed_length());
    const auto wanted = addresses_of(*placed.shape, placed.origins);
    ASSERT_EQ(addresses_of(*pieces.shape, pieces.origins), wanted);
    for_each_block(*pieces.shape, 0, pieces.shape->packed_length(), [&](const placed_block& block) {
        const auto& range = pieces.ranges[block.source];
        const auto start  = pieces.origins[block.source] + static_cast<std::uint64_t>(block.offset);
        ASSERT_GE(start, range.start);
        ASSERT_LE(start + block.length, range.end);
    });
    // Both ends of a range are described bytes.
    for (const memory_range& range : pieces.ranges) {
        if (range.length() > 0) {
            EXPECT_TRUE(std::ranges::contains(wanted, range.start));
            EXPECT_TRUE(std::ranges::contains(wanted, range.end - 1));
        }
    }
}

TEST(memory_pieces, show_the_bytes_of_the_layout_in_its_order)
{
    const auto draw = [](test::random& random) {
        return test::random_spec(random, {.max_bytes = 2000, .num_sources = 4});
    };
    test::for_random_layouts(400, draw, [](test::random& random, const test::spec& described) {
        const auto placed = place(random, must(build(described)));
        expect_same_bytes(placed, whole_sources(placed.shape, placed.bases));
        const auto groups = must(groups_of_blocks(*placed.shape, placed.bases));
        expect_same_bytes(placed, groups);
        for (std::size_t i = 1; i < groups.ranges.size(); ++i) {
            EXPECT_GT(groups.ranges[i].start, groups.ranges[i - 1].end + (1 << 20)) << "two groups could be one";
        }
    });
}

TEST(memory_pieces, leave_large_gaps_out)
{
    const auto shape =
        must(make_strided({.length = 64, .nested = {}}, std::array{dim{.count = 5, .stride = std::int64_t{1} << 30}}));
    std::byte* base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
    EXPECT_TRUE(is_scattered(*shape));
    const auto pieces = must(groups_of_blocks(*shape, {&base, 1}));
    ASSERT_EQ(pieces.ranges.size(), 5u);
    for (const memory_range& range : pieces.ranges) {
        EXPECT_EQ(range.length(), 64u);
    }
}

} // namespace
