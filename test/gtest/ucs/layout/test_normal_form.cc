// Different descriptions of the same bytes give one layout.
#include "ucs/layout/build.h"
#include "ucs/layout/text.h"
#include "ucs/layout/wire.h"

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

layout_ptr normal_form_of(const char* text)
{
    auto created = parse_text(text);
    EXPECT_TRUE(created.has_value()) << text << ": " << (created ? "" : created.error().message);
    return created ? *created : std::make_shared<const layout>();
}

void expect_same(const char* a, const char* b)
{
    EXPECT_EQ(to_text(*normal_form_of(a)), to_text(*normal_form_of(b)));
    EXPECT_EQ(*normal_form_of(a), *normal_form_of(b));
    EXPECT_EQ(normal_form_of(a)->hash(), normal_form_of(b)->hash());
}

TEST(normal_form, touching_blocks_are_one)
{
    expect_same("contig(16,8)", "128");
    expect_same("iov(8@0,8@8,16@16)", "32");
    expect_same("strided(4,iov(8@0,8@8),32)", "strided(4,16,32)");
    expect_same("strided([4,4]x8,[32,8])", "128");
}

TEST(normal_form, continued_dimensions_are_one)
{
    expect_same("strided([3,4]x8,[64,16])", "strided(12,8,16)");
    expect_same("strided(3,strided(4,8,16),64)", "strided(12,8,16)");
    expect_same("strided([1,12,1]x8,[7,16,-3])", "strided(12,8,16)");
}

TEST(normal_form, list_in_equal_steps_is_a_loop)
{
    expect_same("iov(8@0,8@16,8@32,8@48,8@64)", "strided(5,8,16)");
    expect_same("iov(8@0,8@100)", "strided(2,8,100)");
    expect_same("iov(8@0,8@16,8@32,8@100,8@116,8@132)", "strided([2,3]x8,[100,16])");
    expect_same("iov(1:4@8,4@0,1:4@40,4@24,1:4@72,4@48)", "interleaved(1:4@8,3,32;4@0,3,24)");
}

TEST(normal_form, long_run_inside_a_list_is_a_loop)
{
    expect_same("iov(3@0,8@10,8@30,8@50,8@70,8@90,5@1000)", "iov(3@0,strided(5,8,20)@10,5@1000)");
}

TEST(normal_form, negative_and_zero_strides_stay)
{
    EXPECT_EQ(to_text(*normal_form_of("strided(3,8,-8)")), "strided(3,8,-8)");
    EXPECT_EQ(to_text(*normal_form_of("strided(3,8,0)")), "strided(3,8,0)");
    EXPECT_EQ(normal_form_of("strided(3,8,-8)")->overlap(), overlap::none);
    EXPECT_EQ(normal_form_of("strided(3,8,0)")->overlap(), overlap::some);
}

TEST(normal_form, equal_subtrees_are_one_node)
{
    EXPECT_EQ(
        normal_form_of("iov(strided(3,8,20)@0,4@100,strided(3,8,20)@1000,5@2000,strided(3,8,20)@7000)")->nodes().size(),
        5u);
}

TEST(normal_form, interleaved_sources_with_different_repeats_and_totals)
{
    expect_same("interleaved(3*4@0,9,4;1:3*4@0,9,4;2:2*4@0,6,4)", "interleaved(12@0,3,12;1:12@0,3,12;2:8@0,3,8)");
    // Two full cycles, then the short one.
    EXPECT_EQ(to_text(*normal_form_of("interleaved(2*4@0,5,8;1:4@0,2,8)")),
              "iov(interleaved(strided(2,4,8)@0,2,16;1:4@0,2,8)@0,4@32)");
}

TEST(normal_form, nothing_is_nothing)
{
    expect_same("0", "strided([4,0]x8,[1,1])");
    expect_same("iov(0@5,contig(3,0)@9)", "0");
}

TEST(overlap, large_nests_are_decided_without_enumeration)
{
    EXPECT_EQ(normal_form_of("strided([4096,4096]x8,[65536,16])")->overlap(), overlap::none);
    EXPECT_EQ(normal_form_of("strided([4096,4096]x8,[65528,16])")->overlap(), overlap::none);
    EXPECT_EQ(normal_form_of("strided([4097,4097]x8,[65532,16])")->overlap(), overlap::some);
    EXPECT_EQ(normal_form_of("strided([1000000,999999]x1,[1000003,1000033])")->overlap(), overlap::none);
    EXPECT_EQ(normal_form_of("strided([1000034,1000004]x1,[1000003,1000033])")->overlap(), overlap::some);
    EXPECT_EQ(normal_form_of("iov(strided(1M,12,32)@0,strided(1M,12,32)@12,strided(1M,8,32)@24)")->overlap(),
              overlap::none);
    EXPECT_EQ(normal_form_of("iov(strided(1M,12,32)@0,strided(1M,12,32)@11)")->overlap(), overlap::some);
    EXPECT_EQ(normal_form_of("iov(strided(1M,12,32)@0,1:strided(1M,12,32)@11)")->overlap(), overlap::none);
}

} // namespace
} // namespace ucxl::test
