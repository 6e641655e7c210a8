#include "nixl/block_list.h"
#include "support/must.h"
#include "support/random.h"

#include <gtest/gtest.h>
#include <random>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

struct block {
    std::uint64_t region, offset, length;
};

block_list list_of(const std::vector<block>& blocks)
{
    block_list made;
    for (const auto& each : blocks) {
        made.add(each.region, each.offset, each.length);
    }
    return made;
}

std::size_t description_length(const block_list& list)
{
    return must(must(list.describe()).query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)).serialized_length;
}

using places = std::vector<std::pair<std::uint64_t, std::uint64_t>>; // region and offset of each packed byte

// The oracle: byte by byte, as the list was given.
places bytes_of(const std::vector<block>& blocks)
{
    places made;
    for (const auto& each : blocks) {
        for (std::uint64_t i = 0; i < each.length; ++i) {
            made.emplace_back(each.region, each.offset + i);
        }
    }
    return made;
}

struct walk {
    const block_list* list;
    places made;
};

places bytes_of(const block_list& list)
{
    walk into{&list, {}};
    const auto layout = must(list.describe());
    EXPECT_EQ(ucp_layout_walk(
                  layout.get(), 0, layout.packed_length(),
                  [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) {
                      auto& to = *static_cast<walk*>(arg);
                      for (std::size_t i = 0; i < length; ++i) {
                          to.made.emplace_back(to.list->regions().at(source), static_cast<std::uint64_t>(offset) + i);
                      }
                      return UCS_OK;
                  },
                  &into),
              UCS_OK);
    return into.made;
}

} // namespace

TEST(block_list, blocks_that_touch_are_one)
{
    const auto list = list_of({{1, 0, 16}, {1, 16, 16}, {1, 32, 8}, {1, 64, 8}});
    EXPECT_EQ(list.num_blocks(), 2U);
    EXPECT_EQ(list.length(), 48U);
}

TEST(block_list, blocks_that_touch_in_another_region_are_two)
{
    const auto list = list_of({{1, 0, 16}, {2, 16, 16}});
    EXPECT_EQ(list.num_blocks(), 2U);
    EXPECT_EQ(list.regions(), (std::vector<std::uint64_t>{1, 2}));
}

TEST(block_list, blocks_of_no_bytes_are_left_out)
{
    const auto list = list_of({{1, 0, 0}, {2, 64, 16}, {1, 0, 0}});
    EXPECT_EQ(list.num_blocks(), 1U);
    EXPECT_EQ(list.regions(), std::vector<std::uint64_t>{2});
    EXPECT_EQ(list.first_offset(), 64U);
}

TEST(block_list, a_region_that_comes_again_is_the_same_source)
{
    const auto list = list_of({{7, 0, 8}, {9, 0, 8}, {7, 100, 8}, {9, 100, 8}});
    EXPECT_EQ(list.regions(), (std::vector<std::uint64_t>{7, 9}));
}

TEST(block_list, a_description_of_equal_strides_does_not_grow_with_the_list)
{
    const auto strided = [](std::uint64_t count) {
        block_list list;
        for (std::uint64_t i = 0; i < count; ++i) {
            list.add(1, i * 8192, 4096);
        }
        return description_length(list);
    };
    EXPECT_LE(strided(100'000), strided(1'000) + 8);
}

TEST(block_list, random_lists_describe_their_bytes_in_order)
{
    std::mt19937_64 random(ucxl::test::run_seed());
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    for (int round = 0; round < 200; ++round) {
        std::vector<block> blocks(1 + below(60));
        for (auto& each : blocks) {
            each = {.region = below(3), .offset = below(64) * 16, .length = below(3) * 16};
        }
        const auto list   = list_of(blocks);
        const auto wanted = bytes_of(blocks);
        ASSERT_EQ(list.length(), wanted.size());
        if (!wanted.empty()) {
            ASSERT_EQ(bytes_of(list), wanted);
        }
    }
}
