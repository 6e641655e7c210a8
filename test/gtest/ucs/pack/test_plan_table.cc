#include "support/must.h"

#include "ucs/layout/build.h"
#include "ucs/pack/pack_plan.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using ucxl::test::must;

layout_ptr column(std::uint64_t rows)
{
    const dim rows_apart[] = {{rows, 4096}};
    return must(make_strided({.length = 8}, rows_apart));
}

TEST(plan_table, equal_layouts_have_one_plan_and_others_their_own)
{
    const pack_plan_ptr first = must(pack_plan::compile(column(10)));
    EXPECT_EQ(must(pack_plan::compile(column(10))), first);
    EXPECT_NE(must(pack_plan::compile(column(11))), first);
    EXPECT_EQ(must(pack_plan::compile(column(10))), first);
}

TEST(plan_table, plans_end_with_their_last_user)
{
    const layout_ptr layout = column(12);
    pack_plan_ptr plan      = must(pack_plan::compile(layout));
    EXPECT_EQ(must(pack_plan::compile(column(12)))->source_layout(), layout);
    plan.reset();
    EXPECT_EQ(layout.use_count(), 1);
    EXPECT_NE(must(pack_plan::compile(column(12)))->source_layout(), layout);
}

TEST(plan_table, empty_layouts_have_one_plan)
{
    const auto empty         = [] { return must(pack_plan::compile(std::make_shared<const layout>())); };
    const pack_plan_ptr plan = empty();
    EXPECT_EQ(empty(), plan);
}

TEST(plan_table, threads_that_make_and_end_plans_of_equal_layouts_get_plans_of_these)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            for (std::uint64_t round = 0; round < 3000; ++round) {
                const std::uint64_t rows = 20 + round % 3;
                const pack_plan_ptr plan = must(pack_plan::compile(column(rows)));
                ASSERT_EQ(plan->packed_length(), 8 * rows);
                ASSERT_EQ(must(pack_plan::compile(column(rows))), plan);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// A child must not wait for a lock that a thread of its parent held.
TEST(plan_table, child_forked_while_plans_are_made_makes_plans)
{
    const std::jthread maker([](const std::stop_token& ends) {
        while (!ends.stop_requested()) {
            must(pack_plan::compile(column(30)));
        }
    });
    for (int i = 0; i < 200; ++i) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(20); // instead of for ever
            _exit(must(pack_plan::compile(column(31)))->packed_length() == 31 * 8 ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
}

} // namespace
