// How many bytes of cache lines a layout touches, as an estimate.
#include "support/must.h"

#include "ucs/layout/footprint.h"
#include "ucs/layout/text.h"

#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

double touched_by(const char* text)
{
    return touched_length(*must(parse_text(text)));
}

TEST(footprint, of_blocks_is_that_of_their_lines)
{
    EXPECT_EQ(touched_by("contig(1,8)"), 64);
    EXPECT_EQ(touched_by("contig(1,6400)"), 6400);
    EXPECT_EQ(touched_by("contig(0,8)"), 0);
    EXPECT_EQ(touched_by("strided(100,64,128)"), 6400);
    EXPECT_EQ(touched_by("strided(100,65,1024)"), 12800);
    EXPECT_EQ(touched_by("iov(8@0,8@1000,70@2000)"), 64 + 64 + 128);
}

TEST(footprint, counts_a_line_for_each_number_that_has_one)
{
    EXPECT_EQ(touched_by("strided(16384,8,1024)"), 16384 * 64);
    EXPECT_EQ(touched_by("strided(16384,8,-1024)"), 16384 * 64);
    EXPECT_EQ(touched_by("strided([128,128]x8,[131072,1024])"), 16384 * 64);
}

TEST(footprint, counts_a_line_once_for_the_blocks_in_it)
{
    EXPECT_EQ(touched_by("strided(1000,8,32)"), 32000);
    EXPECT_EQ(touched_by("strided([16,8192]x8,[8,8192])"), 8192 * 128) << "16 columns, one after the other";
    EXPECT_EQ(touched_by("strided([8192,4]x8,[8192,16])"), 8192 * 64) << "the blocks of a row are in one line";
}

} // namespace

} // namespace ucxl::test
