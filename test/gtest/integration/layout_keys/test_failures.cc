// The device refuses the Nth command, fails the Nth work request, or fails for good at it, for every N: every call
// either works or returns an error, and leaks nothing. Software device only, because it injects the faults.
#include <string>

#include <gtest/gtest.h>

#include "key_life.h"
#include "support/process.h"

namespace ucxl::test
{
namespace
{

int life_with(const std::string& fault)
{
    const environment variables{{"UCXL_CHILD", "key_life"}, {"SOFTHCA_FAULT", fault}, {"UCX_LOG_LEVEL", "fatal"}};
    return process(program_path(), {}, {.variables = variables}).wait().status;
}

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
    int refused = 0;
    for (int n = 1; n < 400; ++n) {
        const int result = life_with(std::string(GetParam().spec) + ",first=" + std::to_string(n));
        ASSERT_TRUE(is_clean(result)) << "the " << n << "th: " << result;
        refused += result == key_life_refused || result == key_life_recovered ? 1 : 0;
        // After the last command or request, no fault is left.
        if (result == key_life_complete && n > 60) {
            break;
        }
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
    for (int n = 1; n < 20; ++n) {
        recovered += life_with("wqe:umr,first=" + std::to_string(n)) == key_life_recovered ? 1 : 0;
    }
    EXPECT_GE(recovered, 3);
}

TEST(injected_faults, no_more_keys_is_an_error_that_leaves_nothing)
{
    for (int keys = 1; keys < 16; ++keys) {
        const int result = life_with("keys=" + std::to_string(keys));
        EXPECT_TRUE(is_clean(result)) << keys << " keys: " << result;
    }
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
