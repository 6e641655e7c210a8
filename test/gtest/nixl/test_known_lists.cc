#include "nixl/known_lists.h"
#include "support/must.h"
#include "support/random.h"

#include <gtest/gtest.h>
#include <random>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

// `count` blocks at places that depend on the seed.
block_list list_of(std::size_t count, unsigned seed, std::uint64_t region = 1)
{
    std::mt19937_64 random(ucxl::test::run_seed() + seed);
    block_list made;
    for (std::size_t i = 0; i < count; ++i) {
        made.add(region, (random() % (1U << 30)) * 16, 8);
    }
    return made;
}

TEST(known_lists, a_list_that_comes_again_has_the_layout_from_before)
{
    known_lists lists;
    const auto first  = must(lists.describe(list_of(1000, 1)));
    const auto second = must(lists.describe(list_of(1000, 2)));
    EXPECT_NE(first.layout, second.layout);
    EXPECT_EQ(must(lists.describe(list_of(1000, 1))).layout, first.layout);
    EXPECT_EQ(must(lists.describe(list_of(1000, 2))).layout, second.layout);
    EXPECT_EQ(first.num_blocks, 1000U);
    EXPECT_EQ(lists.num_blocks(), 2000U);
}

TEST(known_lists, lists_that_differ_in_one_number_are_different)
{
    known_lists lists;
    const auto with = [&](std::uint64_t region, std::uint64_t offset, std::uint64_t length) {
        auto made = list_of(100, 1);
        made.add(region, offset, length);
        return must(lists.describe(std::move(made)));
    };
    const auto first = with(1, 1ULL << 40, 8);
    EXPECT_EQ(with(1, 1ULL << 40, 8).layout, first.layout);
    EXPECT_NE(with(1, (1ULL << 40) + 1, 8).layout, first.layout);
    EXPECT_NE(with(1, 1ULL << 40, 9).layout, first.layout);
    const auto other = with(2, 1ULL << 40, 8);
    EXPECT_NE(other.layout, first.layout);
    EXPECT_EQ(other.regions, (std::vector<std::uint64_t>{1, 2}));
    // Equal numbers of other regions are another list, though the layout has the same content.
    const auto moved = must(lists.describe(list_of(100, 1, 7)));
    EXPECT_EQ(moved.regions, std::vector<std::uint64_t>{7});
}

TEST(known_lists, only_the_last_ones_are_kept)
{
    known_lists lists;
    const auto first = must(lists.describe(list_of(1000, 1)));
    for (unsigned seed = 2; seed < 2 + known_lists::max_lists; ++seed) {
        must(lists.describe(list_of(1000, seed)));
    }
    EXPECT_EQ(lists.num_blocks(), known_lists::max_lists * 1000);
    EXPECT_NE(must(lists.describe(list_of(1000, 1))).layout, first.layout);
    must(lists.describe(list_of(known_lists::max_blocks, 1)));
    EXPECT_LE(lists.num_blocks(), known_lists::max_blocks);
    must(lists.describe(list_of(known_lists::max_blocks + 1, 1)));
    EXPECT_LE(lists.num_blocks(), known_lists::max_blocks);
}

TEST(known_lists, short_lists_are_not_kept)
{
    known_lists lists;
    const auto found = must(lists.describe(list_of(known_lists::min_blocks - 1, 1)));
    EXPECT_EQ(found.layout->packed_length(), 8 * (known_lists::min_blocks - 1));
    EXPECT_EQ(lists.num_blocks(), 0U);
}

} // namespace
