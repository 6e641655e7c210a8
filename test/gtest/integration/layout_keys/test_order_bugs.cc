// The adversarial order of the software device finds seeded bugs that the order of posting hides, and finds nothing
// where the bug is mended.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "order_bug.h"
#include "support/process.h"

namespace ucxl::test
{
namespace
{

constexpr unsigned most_seeds = 1000;

int result_of(const char* bug, bool mended, const std::string& order)
{
    environment variables{{"UCXL_CHILD", "order_bug"}, {"UCXL_ORDER_BUG", bug}, {"SOFTHCA_ORDER", order}};
    if (mended) {
        variables.emplace_back("UCXL_ORDER_RIGHT", "1");
    }
    return process(program_path(), {}, {.variables = variables}).wait().status;
}

std::string adversarial(unsigned seed)
{
    return "adversarial,seed=" + std::to_string(seed);
}

// More of them in a longer run: UCXL_TEST_SEEDS.
unsigned seeds_to_pass()
{
    const char* const wanted = std::getenv("UCXL_TEST_SEEDS");
    return wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 10;
}

class order_bugs : public ::testing::TestWithParam<const char*>
{
};

TEST_P(order_bugs, are_hidden_by_the_order_of_posting)
{
    EXPECT_EQ(result_of(GetParam(), false, "posted"), order_bug_right);
    EXPECT_EQ(result_of(GetParam(), true, "posted"), order_bug_right);
}

TEST_P(order_bugs, are_found_by_a_seed_below_1000)
{
    unsigned seed = 1;
    int result    = order_bug_right;
    for (; seed < most_seeds && result == order_bug_right; ++seed) {
        result = result_of(GetParam(), false, adversarial(seed));
    }
    EXPECT_EQ(result, order_bug_wrong);
    std::printf("found by seed %u\n", seed - 1);
}

TEST_P(order_bugs, are_not_found_in_the_mended_program)
{
    for (unsigned seed = 1; seed <= seeds_to_pass(); ++seed) {
        EXPECT_EQ(result_of(GetParam(), true, adversarial(seed)), order_bug_right) << adversarial(seed);
    }
}

INSTANTIATE_TEST_SUITE_P(layout_keys, order_bugs, ::testing::ValuesIn(order_bug_names),
                         [](const auto& bug) { return std::string(bug.param); });

} // namespace
} // namespace ucxl::test
