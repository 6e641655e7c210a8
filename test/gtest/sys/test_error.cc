#include "sys/error.h"

#include <gtest/gtest.h>

#include <memory>

namespace
{

using namespace ucxl;

result<int> half_of(int number)
{
    return number % 2 == 0 ? result<int>(number / 2) : fail(errc::invalid_param, "number is odd");
}

result<int> quarter_of(int number)
{
    const int half = UCXL_TRY(half_of(number));
    return half_of(half);
}

result<void> check_even(int number)
{
    UCXL_TRY(half_of(number));
    return {};
}

TEST(try_macro, gives_the_value_and_passes_the_error_on)
{
    EXPECT_EQ(quarter_of(12).value(), 3);
    ASSERT_FALSE(quarter_of(6).has_value());
    EXPECT_EQ(quarter_of(6).error().code, errc::invalid_param);
    EXPECT_EQ(quarter_of(6).error().message, "number is odd");
}

TEST(try_macro, serves_functions_without_a_value)
{
    EXPECT_TRUE(check_even(4).has_value());
    EXPECT_FALSE(check_even(5).has_value());
}

TEST(try_macro, moves_what_can_only_be_moved)
{
    const auto make  = [] { return result<std::unique_ptr<int>>(std::make_unique<int>(7)); };
    const auto taken = [&]() -> result<std::unique_ptr<int>> {
        auto number = UCXL_TRY(make());
        return number;
    };
    EXPECT_EQ(**taken(), 7);
}

TEST(errno_of_the_system, becomes_a_code_and_a_message_with_its_subject)
{
    EXPECT_EQ(fail_errno("a queue", ENOMEM).error().code, errc::no_memory);
    EXPECT_EQ(fail_errno("a queue", EOPNOTSUPP).error().code, errc::unsupported);
    EXPECT_EQ(fail_errno("a queue", EIO).error().code, errc::io_error);
    EXPECT_EQ(fail_errno("a queue", EIO).error().message, "a queue: Input/output error");
}

} // namespace
