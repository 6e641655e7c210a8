// The device refuses the Nth command, fails the Nth work request, or fails for good at it, for every N: every call
// either works or returns an error, and leaks nothing. Software device only, because it injects the faults.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "key_life.h"
#include "support/lives.h"
#include "support/process.h"

namespace ucxl::test
{
namespace
{

constexpr auto role = "key_lives";

bool is_clean(int result)
{
    return result == key_life_complete || result == key_life_recovered || result == key_life_refused ||
           result == key_life_no_setup || result == key_life_left;
}

struct fault_kind {
    const char* name;
    const char* spec; // without the number
};

void PrintTo(const fault_kind& one, std::ostream* out)
{
    *out << one.name;
}

class injected_faults : public ::testing::TestWithParam<fault_kind>
{
};

TEST_P(injected_faults, are_reported_and_leave_nothing)
{
    constexpr int at_once = 30;
    int refused           = 0;
    bool is_behind        = false; // the last command or request: no fault is left
    for (int n = 1; n < 400 && !is_behind; n += at_once) {
        int number = n;
        for (const auto& [status, output] : lives_with(role, numbered(GetParam().spec, n, at_once))) {
            ASSERT_TRUE(is_clean(status)) << "the " << number << "th: " << status << "\n" << output;
            refused += status == key_life_refused || status == key_life_recovered ? 1 : 0;
            is_behind = is_behind || (status == key_life_complete && number > 60);
            ++number;
        }
        ASSERT_EQ(number, n + at_once);
    }
    EXPECT_GT(refused, 2);
}

INSTANTIATE_TEST_SUITE_P(layout_keys, injected_faults,
                         ::testing::Values(fault_kind{"commands", "command"},
                                           fault_kind{"key_creation", "command:create_mkey"},
                                           fault_kind{"work_requests", "wqe"}, fault_kind{"binds", "wqe:umr"},
                                           fault_kind{"device_fatal", "fatal"}));

// One bind request fails: the bind queue is made again, and the same layout is set again. The requests of the self-test
// come first.
TEST(injected_faults, keys_are_bound_after_a_bind_that_failed)
{
    int recovered = 0;
    for (const life& one : lives_with(role, numbered("wqe:umr", 1, 24))) {
        recovered += one.status == key_life_recovered ? 1 : 0;
    }
    EXPECT_GE(recovered, 3);
}

TEST(injected_faults, no_more_keys_is_an_error_that_leaves_nothing)
{
    std::vector<std::string> limits;
    for (int keys = 1; keys < 16; ++keys) {
        limits.push_back("keys=" + std::to_string(keys));
    }
    int keys     = 0;
    int refused  = 0;
    int complete = 0;
    for (const auto& [status, output] : lives_with(role, limits)) {
        ++keys;
        EXPECT_TRUE(is_clean(status)) << keys << " keys: " << status << "\n" << output;
        refused += status == key_life_refused ? 1 : 0;
        complete += status == key_life_complete ? 1 : 0;
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(complete, 0);
}

TEST(injected_faults, after_the_device_failed_every_call_says_so)
{
    const environment fails{
        {"UCXL_CHILD", "dead_device"}, {"SOFTHCA_FAULT", "fatal:rdma_read"}, {"UCX_LOG_LEVEL", "fatal"}};
    const ended_process found_out = process(program_path(), {}, {.variables = fails}).wait();
    EXPECT_EQ(found_out.status, 0) << found_out.output();
    environment and_says_so = fails;
    and_says_so.emplace_back("UCXL_TELL_DOMAIN", "1");
    const ended_process told = process(program_path(), {}, {.variables = and_says_so}).wait();
    EXPECT_EQ(told.status, 0) << told.output();
}

} // namespace
} // namespace ucxl::test
