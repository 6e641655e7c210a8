// The device refuses the Nth command, or fails the Nth work request, for every N: every call either works or returns an
// error, and leaves nothing behind.
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "key_life.h"

namespace ucxl::test
{
namespace
{

// Exit status of a life with that fault; above 255 if a signal ended it.
int life_with(const std::string& fault)
{
    const pid_t child = fork();
    if (child == 0) {
        setenv("UCXL_KEY_LIFE", "1", 1);
        setenv("SOFTHCA_FAULT", fault.c_str(), 1);
        setenv("UCX_LOG_LEVEL", "fatal", 1);
        if (freopen("/dev/null", "w", stderr) != nullptr) {
            execl("/proc/self/exe", "key_life", static_cast<char*>(nullptr));
        }
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
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

class nth_failure : public ::testing::TestWithParam<fault_kind>
{
};

TEST_P(nth_failure, is_reported_and_leaves_nothing)
{
    int refused = 0;
    for (int n = 1; n < 400; ++n) {
        const int result = life_with(std::string(GetParam().spec) + ",first=" + std::to_string(n));
        ASSERT_TRUE(is_clean(result)) << "the " << n << "th: " << result;
        refused += result == key_life_refused || result == key_life_recovered ? 1 : 0;
        // Past the last one nothing is hit.
        if (result == key_life_complete && n > 40) {
            break;
        }
    }
    EXPECT_GT(refused, 2);
}

INSTANTIATE_TEST_SUITE_P(layout_keys, nth_failure,
                         ::testing::Values(fault_kind{"commands", "command"},
                                           fault_kind{"key_creation", "command:create_mkey"},
                                           fault_kind{"work_requests", "wqe"}, fault_kind{"binds", "wqe:umr"}));

// One bind request fails: the bind queue is made anew, and the same layout set again.
TEST(layout_keys, are_bound_after_a_bind_that_failed)
{
    EXPECT_EQ(life_with("wqe:umr,first=1"), key_life_recovered);
}

TEST(layout_keys, no_more_keys_is_an_error_that_leaves_nothing)
{
    for (int keys = 1; keys < 12; ++keys) {
        const int result = life_with("keys=" + std::to_string(keys));
        EXPECT_TRUE(is_clean(result)) << keys << " keys: " << result;
    }
}

} // namespace
} // namespace ucxl::test
