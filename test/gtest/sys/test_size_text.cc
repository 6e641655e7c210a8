#include "sys/size_text.h"

#include "support/random.h"

#include <gtest/gtest.h>

#include <string>

namespace ucxl::test
{
namespace
{

TEST(size_text, is_a_number_with_or_without_a_unit)
{
    EXPECT_EQ(0u, read_size("0"));
    EXPECT_EQ(4096u, read_size("4096"));
    EXPECT_EQ(12u, read_size("12b"));
    EXPECT_EQ(std::size_t{128} << 10, read_size("128k"));
    EXPECT_EQ(std::size_t{128} << 10, read_size("128KB"));
    EXPECT_EQ(std::size_t{3} << 20, read_size("3Mb"));
    EXPECT_EQ(std::size_t{5} << 30, read_size("5g"));
    EXPECT_EQ(std::size_t{7} << 40, read_size("7T"));
}

TEST(size_text, of_no_limit_is_the_largest_number)
{
    EXPECT_EQ(SIZE_MAX, read_size("inf"));
    EXPECT_EQ(SIZE_MAX, read_size("INF"));
    EXPECT_EQ(SIZE_MAX, read_size("18446744073709551615"));
}

TEST(size_text, that_is_something_else_is_refused)
{
    for (const char* text : {"", "k", "b", "-5", " -5", "+5", " 5", "5 ", "5x", "5kk", "5bb", "5kbb", "5bk", "1.5k",
                             "infinite", "0x10", "auto"}) {
        EXPECT_FALSE(read_size(text)) << '"' << text << '"';
    }
}

TEST(size_text, beyond_the_largest_number_is_refused)
{
    EXPECT_FALSE(read_size("18446744073709551616"));
    EXPECT_FALSE(read_size("17179869184g")); // 2^64, of which nothing is left in 64 bits
    EXPECT_EQ(std::size_t{17179869183} << 30, read_size("17179869183g"));
    EXPECT_FALSE(read_size("16777216t"));
}

TEST(size_text, of_any_number_is_that_number_or_refused_if_it_does_not_fit)
{
    random from(run_seed());
    RecordProperty("seed", std::to_string(run_seed()));
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t number = from.next() >> from.below(64);
        const unsigned unit        = static_cast<unsigned>(from.below(5));
        const auto right           = static_cast<unsigned __int128>(number) << (10 * unit);
        std::string text           = std::to_string(number);
        if (unit > 0) {
            text += "kmgt"[unit - 1];
        }
        const auto size = read_size(text);
        EXPECT_EQ(right <= SIZE_MAX, size.has_value()) << text;
        EXPECT_EQ(static_cast<std::size_t>(right), size.value_or(static_cast<std::size_t>(right))) << text;
    }
}

} // namespace
} // namespace ucxl::test
