// The description of a plan: its numbers, the rejected forms with reasons, and when packing is the better choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ucs/layout/text.h"
#include "uct/ib/mlx5/layout/explain.h"

namespace ucxl::test
{
namespace
{

using ::testing::HasSubstr;
using ::testing::Not;

std::string explained(const char* text, const mlx5::device_limits& limits = {})
{
    const auto layout = parse_text(text);
    return layout ? mlx5::explain(**layout, limits) : layout.error().message;
}

TEST(explain, matrix_column_is_one_repeat_block_but_better_packed)
{
    const std::string text = explained("strided(1024,8,8192)");
    EXPECT_THAT(text,
                HasSubstr("1 keys, 4 octowords, 1 bind requests with their entries, 0 that point to them, depth 1"));
    EXPECT_THAT(text, HasSubstr("repeat block of 1 entries, 1024 turns, 8192 bytes"));
    EXPECT_THAT(text, HasSubstr("source 0 + 0: 8 bytes, stride 8192"));
    EXPECT_THAT(text, HasSubstr("1024 followed"));
    EXPECT_THAT(text, HasSubstr("list of all blocks: 1 keys, 1024 octowords"));
    EXPECT_THAT(text, HasSubstr("pack instead"));
}

TEST(explain, large_blocks_are_worth_a_key)
{
    const std::string text = explained("strided(1000,4096,65536)");
    EXPECT_THAT(text, HasSubstr("repeat block: a stride of 65536 is not from 0 to 65535"));
    EXPECT_THAT(text, HasSubstr("a key, bound once and used often"));
    EXPECT_THAT(text, Not(HasSubstr("pack instead")));
}

TEST(explain, every_reason_against_a_repeat_block_has_its_numbers)
{
    mlx5::device_limits few;
    few.max_repeat_count   = 3;
    few.max_repeat_entries = 1;
    EXPECT_THAT(explained("strided(4,8,64)", few), HasSubstr("4 turns are over the limit of 3"));
    EXPECT_THAT(explained("interleaved(8@0,3,16;1:8@0,3,16)", few), HasSubstr("2 entries are over the limit of 1"));
    EXPECT_THAT(explained("strided(4,8,-64)"), HasSubstr("a stride of -64 is not from 0"));
    EXPECT_THAT(explained("strided(4,65536,65540)"), HasSubstr("a stride of 65540 is not"));
    mlx5::device_limits wide;
    wide.max_repeat_stride = 1 << 20;
    EXPECT_THAT(explained("strided(4,65536,65540)", wide),
                HasSubstr("a block of 65536 bytes is over the limit of 65535"));
    mlx5::device_limits none;
    none.repeat_blocks = false;
    EXPECT_THAT(explained("strided(4,8,64)", none), HasSubstr("repeat block: the device has none"));
}

TEST(explain, what_the_device_cannot_follow_has_to_be_packed)
{
    mlx5::device_limits limits;
    limits.repeat_blocks   = false;
    limits.max_entries     = 1000;
    const std::string text = explained("strided(1001,8,16)", limits);
    EXPECT_THAT(text, HasSubstr("none: 1001 translation entries are over the limit of 1000"));
    EXPECT_THAT(text, HasSubstr("pack: the device cannot follow this layout"));
}

TEST(explain, windows_are_decided_by_a_rule_of_their_own)
{
    EXPECT_THAT(explained("strided(1000,4096,65536)"), HasSubstr("window         key\n"));
    EXPECT_THAT(explained("strided(8,8,8192)"), HasSubstr("window         key\n")) << "a copy has a price of its own";
    EXPECT_THAT(explained("strided(100000,8,8192)"),
                HasSubstr("window         copied, because the device would follow 100000 translations; copying 100000 "
                          "blocks is faster\n"));
    EXPECT_THAT(explained("0"), HasSubstr("window         copied, because the window is empty\n"));
    mlx5::device_limits few;
    few.repeat_blocks = false;
    few.max_entries   = 1000;
    EXPECT_THAT(explained("strided(1001,8,16)", few),
                HasSubstr("window         copied, because 1001 translation entries are over the limit of 1000\n"));
}

TEST(explain, windows_are_decided_with_the_room_of_their_keys)
{
    mlx5::device_limits flat;
    flat.repeat_blocks = false;
    flat.max_nesting   = 1; // so the list cannot move to another key
    EXPECT_THAT(explained("strided(200,65536,131072)", flat), HasSubstr("advice         a key"));
    EXPECT_THAT(explained("strided(200,65536,131072)", flat), HasSubstr("window         copied, because "));
}

TEST(explain, long_plans_are_cut)
{
    const std::string text = explained("iov(1000,8..256,seed=1)");
    EXPECT_THAT(text, HasSubstr("and 993 more"));
    EXPECT_LT(text.size(), 2000u);
}

} // namespace
} // namespace ucxl::test
