// Tiles: which layouts have some, and that whatever pieces they are read and written by, the bytes are those of the
// plan.
#include "sample.h"

#include "support/must.h"
#include "support/property.h"

#include "ucs/layout/text.h"
#include "ucs/pack/tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace
{

using namespace ucxl;
using namespace ucxl::test;

struct tiled_layout {
    std::string name;
    std::string text;
    std::uint64_t length;
};

void PrintTo(const tiled_layout& each, std::ostream* stream)
{
    *stream << each.name;
}

class tile_length_of : public testing::TestWithParam<tiled_layout>
{
};

TEST_P(tile_length_of, is_some_iterations_that_share_lines)
{
    EXPECT_EQ(tile_length(*must(parse_text(GetParam().text))), GetParam().length);
}

const tiled_layout layouts[] = {
    {"panel_of_16_columns", "strided(16,strided(1024,8,8192),8)", 4 * 8192},
    {"panel_of_2_columns", "strided(2,strided(1024,8,8192),8)", 2 * 8192},
    {"panel_from_the_last_column", "strided(16,strided(1024,8,8192),-8)", 4 * 8192},
    {"transposed_matrix_of_complex_numbers", "strided(64,strided(512,16,8192),16)", 4 * 8192},
    {"panel_of_numbers_of_4_bytes", "strided(64,strided(512,4,4096),4)", 16 * 2048},
    {"panels_far_apart", "strided(3,strided(4,strided(1024,8,8192),8),16777216)", 4 * 8192},
    {"columns_that_fill_half_a_line", "strided(8,strided(256,32,8192),32)", 2 * 8192},
    {"one_column", "strided(1024,8,8192)", 0},
    {"columns_in_lines_of_their_own", "strided(16,strided(1024,8,8192),64)", 0},
    {"short_columns", "strided(16,strided(64,8,8192),8)", 0},
    {"columns_longer_than_a_tile", "strided(16,strided(4096,8,8192),8)", 0},
    {"columns_in_the_same_lines_anyway", "strided(4,strided(1024,8,32),8)", 0},
    {"rows", "strided(16,4096,8192)", 0},
    {"bytes", "100000", 0},
    {"nothing", "0", 0},
};

INSTANTIATE_TEST_SUITE_P(, tile_length_of, testing::ValuesIn(layouts),
                         [](const auto& each) { return each.param.name; });

struct piece {
    std::uint64_t offset;
    std::uint64_t length;
};

// Of all packed bytes, in their order.
std::vector<piece> random_pieces(test::random& numbers, std::uint64_t total)
{
    const std::uint64_t longest = pick(numbers, 1, std::max<std::uint64_t>(total, 1));
    std::vector<piece> all;
    for (std::uint64_t at = 0; at < total; at += all.back().length) {
        all.push_back({at, pick(numbers, 1, std::min(longest, total - at))});
    }
    return all;
}

// A random layout, and two operations on it with tiles of random lengths.
void for_random_operations(
    const std::function<void(test::random&, const sample&, const sample_memory&, tile&, const tile::side&)>& operation)
{
    for_random_layouts(300, draw_sample, [&](test::random& numbers, const spec& described) {
        const sample drawn       = sample_of(described);
        const pack_plan_ptr plan = must(pack_plan::compile(drawn.what));
        const sample_memory memory(drawn, guard_side::back, numbers);
        const std::uint64_t total = plan->packed_length();
        tile together;
        for (int number = 0; number < 2; ++number) {
            together.start(pick(numbers, 1, std::min<std::uint64_t>(max_tile_length, total + 10)));
            ASSERT_TRUE(together.is_used());
            ASSERT_NO_FATAL_FAILURE(operation(numbers, drawn, memory, together, {*plan, memory.bases(), total}));
        }
    });
}

TEST(tile_random, reads_by_any_pieces_are_those_of_the_layout)
{
    for_random_operations([](test::random& numbers, const sample& drawn, const sample_memory& memory, tile& together,
                             const tile::side& side) {
        auto pieces = random_pieces(numbers, side.length);
        if (numbers.one_in(2)) {
            numbers.shuffle(pieces);
        }
        for (const auto& [offset, length] : pieces) {
            std::vector<std::byte> read(length);
            together.read(side, offset, length, read.data());
            ASSERT_EQ(read, memory.read(drawn, offset, length)) << "[" << offset << ", +" << length << ")";
        }
    });
}

TEST(tile_random, writes_by_any_pieces_are_those_of_the_layout)
{
    for_random_operations([](test::random& numbers, const sample& drawn, const sample_memory& memory, tile& together,
                             const tile::side& side) {
        auto pieces = random_pieces(numbers, side.length);
        // Of bytes that are there twice, those stay that are written last.
        if (drawn.what->overlap() == overlap::none && numbers.one_in(2)) {
            numbers.shuffle(pieces);
        }
        const std::vector<std::byte> data = random_bytes(numbers, side.length);
        const auto expected               = memory.after_write(drawn, 0, data);
        for (const auto& [offset, length] : pieces) {
            together.write(side, offset, length, &data[offset]);
        }
        together.flush(side);
        ASSERT_EQ(memory.contents(), expected);
    });
}

TEST(tile_write, leaves_alone_what_did_not_come)
{
    const pack_plan_ptr plan = must(pack_plan::compile(must(parse_text("strided(4,strided(4,2,8),2)"))));
    std::vector<std::byte> memory(32, std::byte{1}), sent(9, std::byte{2});
    std::byte* const base = memory.data();
    const tile::side side{*plan, {&base, 1}, plan->packed_length()};
    tile together;
    together.start(16);
    ASSERT_TRUE(together.is_used());
    together.write(side, 0, 5, sent.data());
    EXPECT_EQ(std::ranges::count(memory, std::byte{2}), 0);
    together.write(side, 5, 4, sent.data());
    together.flush(side);
    EXPECT_EQ(std::ranges::count(memory, std::byte{2}), 9);
    together.flush(side);
    EXPECT_EQ(std::ranges::count(memory, std::byte{2}), 9);
}

} // namespace
