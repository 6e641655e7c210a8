// Which plan the worked examples of the literature get, number by number, and what cannot be lowered.
#include "plan_walk.h"

#include "support/must.h"

#include "ucs/layout/build.h"
#include "ucs/layout/text.h"
#include "uct/ib/mlx5/layout/lower.h"

#include <gtest/gtest.h>

#include <ctime>

namespace ucxl::test
{
namespace
{

struct example {
    const char* name;
    const char* text;     // of the layout
    const char* expected; // plan
};

void PrintTo(const example& one, std::ostream* out)
{
    *out << one.name;
}

class worked_example : public ::testing::TestWithParam<example>
{
};

TEST_P(worked_example, has_this_plan)
{
    const auto of = parse_text(GetParam().text);
    ASSERT_TRUE(of.has_value()) << of.error().message;
    const auto made = mlx5::lower(**of, {});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(to_string(*made), GetParam().expected);
    EXPECT_EQ(broken_rule(*made, {}), "");
    EXPECT_EQ(to_string(segments_of(*made)), to_string(joined(segments_of(**of))));
}

INSTANTIATE_TEST_SUITE_P(
    lowering, worked_example,
    ::testing::Values(example{"eight_of_sixty_four", "strided(8,8,64)", "0: repeat x8 src0+0:8/64\n"},
                      example{"matrix_column_of_5", "strided(5,512,3072)", "0: repeat x5 src0+0:512/3072\n"},
                      example{"hundred_of_48", "strided(100,8,48)", "0: repeat x100 src0+0:8/48\n"},
                      example{"contiguous", "contig(1,4096)", "0: klm src0+0:4096\n"},
                      // rows of a sub-matrix of a matrix of planes: the planes' parts first, the rows out of them
                      example{"sub_block_3d", "strided([40,40]x16,[16384,64])",
                              "0: repeat x40 src0+0:2560/16384\n1: repeat x1600 key0+0:16/64\n"},
                      // too far apart for a repeat block: a list
                      example{"far_rows", "strided(3,64,1048576)",
                              "0: klm src0+0:64 src0+1048576:64 src0+2097152:64\n"},
                      example{"backwards", "strided(3,8,-64)", "0: klm src0+0:8 src0+-64:8 src0+-128:8\n"},
                      example{"huge_block", "contig(1,5000000000)",
                              "0: klm src0+0:2147483648 src0+2147483648:2147483648 src0+4294967296:705032704\n"}));

TEST(lowering, refuses_a_layout_without_bytes)
{
    const auto made = mlx5::lower(layout(), {});
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, errc::invalid_param);
}

TEST(lowering, a_list_at_the_device_limit_is_one_key_and_one_entry_more_are_three)
{
    mlx5::device_limits limits;
    limits.max_list_entries = 64;
    limits.repeat_blocks    = false;
    const auto at           = parse_text("strided(64,8,16)");
    const auto over         = parse_text("strided(65,8,16)");
    const auto fits         = mlx5::lower(**at, limits);
    const auto nests        = mlx5::lower(**over, limits);
    ASSERT_TRUE(fits.has_value() && nests.has_value());
    EXPECT_EQ(fits->keys.size(), 1);
    EXPECT_EQ(nests->keys.size(), 3);
    EXPECT_EQ(broken_rule(*nests, limits), "");
}

// Blocks that nothing but a list describes.
layout_ptr irregular(std::size_t blocks)
{
    std::vector<iov_part> parts;
    for (std::size_t i = 0; i < blocks; ++i) {
        parts.push_back({0, static_cast<std::int64_t>(i * 16 + (i * 2654435761U >> 16) % 8), {8, nullptr}});
    }
    return must(make_iov(parts));
}

TEST(lowering, nested_lists_are_as_long_as_the_device_allows_however_little_room_the_last_key_has)
{
    mlx5::device_limits limits;
    limits.max_list_entries   = 65532;
    limits.max_root_octowords = 64;
    const layout_ptr of       = irregular(300'000);
    const auto made           = mlx5::lower(*of, limits);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made->keys.size(), 6);
    EXPECT_EQ(made->root().num_entries, 5);
    EXPECT_EQ(broken_rule(*made, limits), "");

    const auto shorter = mlx5::lower(*irregular(65), limits);
    ASSERT_TRUE(shorter.has_value());
    EXPECT_EQ(shorter->keys.size(), 2);
    EXPECT_EQ(shorter->cost.depth, 2);
}

TEST(lowering, a_repeat_block_that_passes_the_room_of_the_last_key_is_nested)
{
    const auto of = parse_text("interleaved(8@0,100,64;8@16,100,72;8@32,100,80;8@48,100,88)");
    ASSERT_TRUE(of.has_value()) << of.error().message;
    mlx5::device_limits limits;
    limits.max_root_octowords = 8;
    EXPECT_EQ(mlx5::lower(**of, limits)->keys.size(), 1);
    limits.max_root_octowords = 4;
    const auto made           = mlx5::lower(**of, limits);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(to_string(*made), "0: repeat x100 src0+0:8/64 src0+16:8/72 src0+32:8/80 src0+48:8/88\n"
                                "1: klm key0+0:3200\n");
}

TEST(lowering, more_bytes_than_the_room_of_the_last_key_can_show_are_refused)
{
    mlx5::device_limits limits;
    limits.max_root_octowords = 4;
    EXPECT_TRUE(mlx5::lower(*must(parse_text("contig(1,8589934592)")), limits).has_value());
    const auto made = mlx5::lower(*must(parse_text("contig(1,8589934593)")), limits);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, errc::exceeds_limit);
    EXPECT_NE(made.error().message.find("max_entries"), std::string::npos) << made.error().message;
}

TEST(lowering, refuses_more_blocks_than_the_caller_allows)
{
    mlx5::device_limits limits;
    limits.max_entries   = 1000;
    limits.repeat_blocks = false;
    const auto made      = mlx5::lower(*must(parse_text("strided(1001,8,16)")), limits);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, errc::exceeds_limit);
    EXPECT_NE(made.error().message.find("1000"), std::string::npos) << made.error().message;
}

// Layouts whose wire forms have a few bytes. To look at all their pieces takes minutes, or more memory than there is.
TEST(lowering, looks_at_few_more_pieces_than_it_may_have_entries)
{
    mlx5::device_limits limits;
    limits.max_entries = 1 << 16;
    for (const auto& [text, has_plan] :
         {std::pair("strided(10000,strided(2,1,35184372088832),8)", true), // of single blocks, and not of chunks
          std::pair("strided(10000,strided(10000,strided(2,1,-3),0),1)", false),
          std::pair("strided(60000,iov(strided(10000,strided(2,1,-3),0)@0,contig(1,1)@100),0)", false)}) {
        SCOPED_TRACE(text);
        const auto of = parse_text(text);
        ASSERT_TRUE(of.has_value()) << of.error().message;
        const std::clock_t begin = std::clock();
        const auto made          = mlx5::lower(**of, limits);
        EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC);
        ASSERT_EQ(made.has_value(), has_plan);
        if (!has_plan) {
            EXPECT_EQ(made.error().code, errc::exceeds_limit);
        }
    }
}

TEST(lowering, stride_of_16_bits_repeats_and_one_more_does_not)
{
    const auto fits  = mlx5::lower(*must(parse_text("strided(4,8,65535)")), {});
    const auto wider = mlx5::lower(*must(parse_text("strided(4,8,65536)")), {});
    ASSERT_TRUE(fits.has_value() && wider.has_value());
    EXPECT_EQ(fits->root().kind, mlx5::key_kind::repeat);
    EXPECT_EQ(wider->root().kind, mlx5::key_kind::klm);
}

TEST(lowering, blocks_of_one_power_of_two_are_a_key_of_fixed_entities)
{
    mlx5::device_limits limits;
    limits.ksm      = true;
    const auto of   = parse_text("strided(4,65536,131072)");
    const auto made = mlx5::lower(**of, limits);
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->root().kind, mlx5::key_kind::ksm);
    EXPECT_EQ(made->root().log_entity_size, 16);
    EXPECT_EQ(broken_rule(*made, limits), "");
}

} // namespace
} // namespace ucxl::test
