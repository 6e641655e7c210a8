#include "softhca/shim/host/shared_lock.h"

#include "support/forked_process.h"
#include "support/random.h"
#include "support/wait_until.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca
{
namespace
{

struct counted {
    shared_lock lock;
    std::uint64_t value;
    std::uint64_t copy;
    std::atomic<unsigned> surprises; // of processes that are killed before they can report anything
};

counted& make_counted()
{
    counted& made = ucxl::test::shared<counted>();
    EXPECT_EQ(made.lock.make(), 0);
    return made;
}

TEST(shared_lock, one_at_a_time_over_threads_and_processes)
{
    counted& both         = make_counted();
    constexpr int threads = 2;
    constexpr int rounds  = 20'000;
    const auto count      = [&both] {
        for (int i = 0; i < rounds; ++i) {
            EXPECT_FALSE(both.lock.lock());
            ++both.value;
            both.lock.unlock();
        }
    };
    ucxl::test::forked_process child([&count](ucxl::test::forked_process&) { count(); });
    {
        std::vector<std::jthread> here;
        for (int i = 0; i < threads; ++i) {
            here.emplace_back(count);
        }
    }
    EXPECT_EQ(child.join(), 0);
    EXPECT_EQ(both.value, std::uint64_t{rounds} * (threads + 1));
}

TEST(shared_lock, a_killed_holder_is_told_to_the_next_one_once)
{
    counted& both = make_counted();
    ucxl::test::forked_process holder([&both](ucxl::test::forked_process& self) {
        both.lock.lock();
        self.ready();
        self.wait();
    });
    holder.kill();
    EXPECT_TRUE(both.lock.lock());
    both.lock.unlock();
    EXPECT_FALSE(both.lock.lock());
    both.lock.unlock();
}

TEST(shared_lock, a_waiter_gets_it_when_the_holder_is_killed)
{
    counted& both = make_counted();
    ucxl::test::forked_process holder([&both](ucxl::test::forked_process& self) {
        both.lock.lock();
        self.ready();
        self.wait();
    });
    std::atomic<bool> told    = false;
    std::atomic<pid_t> thread = 0;
    std::jthread waiter([&both, &told, &thread] {
        thread = ::gettid();
        thread.notify_one();
        told = both.lock.lock();
        both.lock.unlock();
    });
    thread.wait(0);
    EXPECT_TRUE(ucxl::test::wait_until([&thread] { return ucxl::test::is_asleep(thread); }));
    holder.kill();
    waiter.join();
    EXPECT_TRUE(told);
}

TEST(shared_lock, a_holder_that_executes_another_program_is_gone)
{
    counted& both = make_counted();
    ucxl::test::forked_process holder([&both](ucxl::test::forked_process&) {
        both.lock.lock();
        ::execl("/bin/true", "true", nullptr);
    });
    EXPECT_EQ(holder.join(), 0);
    EXPECT_TRUE(both.lock.lock());
    both.lock.unlock();
}

TEST(shared_lock, a_repair_that_was_owed_is_told_again)
{
    counted& both = make_counted();
    EXPECT_FALSE(both.lock.lock());
    both.lock.owe_repair();
    both.lock.unlock();
    EXPECT_TRUE(both.lock.lock());
    both.lock.unlock();
    EXPECT_FALSE(both.lock.lock());
    both.lock.unlock();
}

// Processes that change two numbers together and are killed at any moment: a holder that is told may find them
// different, one that is not told finds them equal.
TEST(shared_lock, kills_at_random_moments_never_hang_and_are_never_missed)
{
    ucxl::test::random random(ucxl::test::run_seed());
    counted& both = make_counted();
    unsigned told = 0;
    for (int round = 0; round < 60; ++round) {
        const auto work = [&both](ucxl::test::forked_process& self) {
            self.ready();
            for (;;) {
                if (both.lock.lock()) {
                    both.copy = both.value;
                }
                both.surprises += both.value != both.copy ? 1 : 0;
                ++both.value;
                ++both.copy;
                both.lock.unlock();
            }
        };
        ucxl::test::forked_process first(work);
        ucxl::test::forked_process second(work);
        ::usleep(static_cast<useconds_t>(random.below(3000))); // synchronises nothing: when the kill comes is open
        first.kill();
        ::usleep(static_cast<useconds_t>(random.below(1000)));
        second.kill();
        if (both.lock.lock()) {
            ++told;
            both.copy = both.value;
        }
        ASSERT_EQ(both.value, both.copy);
        both.lock.unlock();
    }
    EXPECT_EQ(both.surprises, 0u);
    EXPECT_GT(told, 0u);
}

} // namespace
} // namespace ucxl::softhca
