// The device refuses the Nth command or fails the Nth work request, for every N: every call works or returns an error,
// the pool is as before, and the same call works when it is tried again. Software device only.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pool_life.h"
#include "queue_life.h"
#include "support/lives.h"

namespace ucxl::test
{
namespace
{

constexpr auto role = "pool_lives";

int life_with(const std::string& fault, const environment& more = {})
{
    const auto lives = lives_with(role, {fault}, more);
    return lives.empty() ? -1 : lives.front().status;
}

struct fault_kind {
    const char* name;
    const char* spec; // without the number
    int last;         // so many are tried at least: the self-test of the domain, which does without some, comes first
    int least;        // so many times an allocation failed and worked when it was tried again
};

void PrintTo(const fault_kind& one, std::ostream* out)
{
    *out << one.name;
}

class pool_faults : public ::testing::TestWithParam<fault_kind>
{
};

TEST_P(pool_faults, change_nothing_and_leave_nothing)
{
    constexpr int at_once = 20;
    int recovered         = 0;
    int complete          = 0;
    for (int n = 1; n < 400 && (n <= GetParam().last || complete < 3); n += at_once) {
        int number = n;
        for (const auto& [status, output] : lives_with(role, numbered(GetParam().spec, n, at_once))) {
            ASSERT_TRUE(status == pool_life_complete || status == pool_life_recovered || status == pool_life_left ||
                        status == pool_life_no_setup)
                << "the " << number << "th: " << status << "\n"
                << output;
            recovered += status == pool_life_recovered ? 1 : 0;
            complete = status == pool_life_complete ? complete + 1 : 0; // behind the last one
            ++number;
        }
        ASSERT_EQ(number, n + at_once);
    }
    EXPECT_GE(complete, 3);
    EXPECT_GE(recovered, GetParam().least);
}

INSTANTIATE_TEST_SUITE_P(device_memory, pool_faults,
                         ::testing::Values(fault_kind{"commands", "command", 60, 8},
                                           fault_kind{"keys", "command:create_mkey", 20, 6},
                                           fault_kind{"binds", "wqe:umr", 20, 3}));

// The queue was lost for one copy, not for the next one as well.
TEST(lost_queue, copies_at_once_when_the_device_makes_queues_again)
{
    int lost = 0;
    for (const auto& [status, output] : lives_with("queue_lives", numbered("command:create_qp", 1, 8))) {
        EXPECT_TRUE(status == queue_life_complete || status == queue_life_lost || status == queue_life_no_setup)
            << status << "\n"
            << output;
        lost += status == queue_life_lost ? 1 : 0;
    }
    EXPECT_EQ(lost, 1);
}

// Every limit below what is needed is an error that changes nothing and leaves nothing.
void expect_refusals(const std::string& limit, int step, int most)
{
    std::vector<std::string> limits;
    for (int number = step; number <= most; number += step) {
        limits.push_back(limit + "=" + std::to_string(number));
    }
    int refused  = 0;
    int complete = 0;
    for (const auto& [status, output] : lives_with(role, limits)) {
        EXPECT_TRUE(status == pool_life_complete || status == pool_life_recovered || status == pool_life_refused ||
                    status == pool_life_no_setup)
            << status << "\n"
            << output;
        EXPECT_EQ(status == pool_life_refused, output.contains("bytes of device memory: ")) << output;
        refused += status == pool_life_refused ? 1 : 0;
        complete += status == pool_life_complete ? 1 : 0;
    }
    EXPECT_GE(refused, 2);
    EXPECT_GT(complete, 1);
}

TEST(pool_limits, too_few_keys)
{
    expect_refusals("keys", 1, 24);
}

TEST(pool_limits, too_little_memory)
{
    expect_refusals("memic", 4096, 65536);
}

TEST(pool_limits, keys_at_addresses_work_by_a_second_key_too)
{
    EXPECT_EQ(life_with("", {{"UCX_LAYOUT_KEYS_ADDRESS", "ksm"}}), pool_life_complete);
    EXPECT_EQ(life_with("refuse:umr_start_addr"), pool_life_complete);
}

TEST(pool_limits, devices_without_atomics_through_keys_have_the_memory)
{
    EXPECT_EQ(life_with("refuse:indirect_atomic"), pool_life_complete);
}

} // namespace
} // namespace ucxl::test
