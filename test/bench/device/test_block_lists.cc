// What `bench device` gives to stock UCX: it is compared with windows, so it has to be right.
#include "block_lists.h"

#include <array>
#include <stdexcept>

#include <gtest/gtest.h>

namespace ucxl::bench
{

namespace
{

using examples::block;
using examples::pattern;
using examples::pattern_side;

pattern_side side_of(std::vector<block> blocks)
{
    return {.array_bytes = {}, .base_offsets = {}, .make_layout = {}, .blocks = [blocks] { return blocks; }};
}

pattern pattern_of(std::vector<block> sent, std::vector<block> arrived)
{
    return {.name        = "pattern",
            .description = {},
            .send        = side_of(std::move(sent)),
            .receive     = side_of(std::move(arrived)),
            .pack        = {},
            .unpack      = {}};
}

// Ten bytes in blocks of 3, 1 and 6, backwards in memory.
class scattered : public testing::Test
{
protected:
    std::array<std::byte, 16> memory{};
    std::array<memory_block, 3> blocks{{{&memory[12], 3}, {&memory[9], 1}, {&memory[1], 6}}};

    std::byte* place_of(std::size_t packed)
    {
        for (const memory_block& one : blocks) {
            if (packed < one.length) {
                return one.begin + packed;
            }
            packed -= one.length;
        }
        return nullptr;
    }
};

TEST_F(scattered, any_part_is_gathered)
{
    for (std::size_t i = 0; i < 10; ++i) {
        *place_of(i) = static_cast<std::byte>(i + 1);
    }
    block_cursor cursor(blocks);
    EXPECT_EQ(cursor.length(), 10U);
    for (std::size_t begin = 0; begin <= 10; ++begin) {
        for (std::size_t length = 0; length <= 12; ++length) {
            std::array<std::byte, 12> packed{};
            ASSERT_EQ(cursor.gather(begin, std::span(packed).first(length)), std::min(length, 10 - begin));
            for (std::size_t i = 0; i < std::min(length, 10 - begin); ++i) {
                ASSERT_EQ(packed[i], static_cast<std::byte>(begin + i + 1)) << begin << " + " << i;
            }
        }
    }
}

TEST_F(scattered, parts_in_any_order_are_scattered)
{
    std::array<std::byte, 10> packed{};
    for (std::size_t i = 0; i < packed.size(); ++i) {
        packed[i] = static_cast<std::byte>(i + 1);
    }
    block_cursor cursor(blocks);
    cursor.scatter(7, std::span(packed).subspan(7));
    cursor.scatter(0, std::span(packed).first(2));
    cursor.scatter(2, std::span(packed).subspan(2, 5));
    for (std::size_t i = 0; i < packed.size(); ++i) {
        EXPECT_EQ(*place_of(i), packed[i]) << i;
    }
    for (const std::size_t gap : {0, 7, 8, 10, 11, 15}) {
        EXPECT_EQ(memory[gap], std::byte{}) << gap;
    }
}

TEST(common_pieces, end_where_a_block_of_either_side_ends)
{
    const auto pieces = common_pieces(pattern_of({{0, 100, 6}, {1, 0, 6}}, {{0, 50, 4}, {0, 70, 8}}));
    const std::vector<common_piece> wanted{{0, 100, 0, 50, 4}, {0, 104, 0, 70, 2}, {1, 0, 0, 72, 6}};
    EXPECT_EQ(pieces, wanted);
}

TEST(common_pieces, neighbours_are_one)
{
    const auto pieces = common_pieces(pattern_of({{0, 0, 8}, {0, 8, 8}}, {{0, 16, 4}, {0, 20, 12}}));
    const std::vector<common_piece> wanted{{0, 0, 0, 16, 16}};
    EXPECT_EQ(pieces, wanted);
}

TEST(common_pieces, sides_of_different_lengths_are_refused)
{
    EXPECT_THROW(common_pieces(pattern_of({{0, 0, 8}}, {{0, 0, 9}})), std::runtime_error);
    EXPECT_THROW(common_pieces(pattern_of({{0, 0, 9}}, {{0, 0, 8}})), std::runtime_error);
}

} // namespace
} // namespace ucxl::bench
