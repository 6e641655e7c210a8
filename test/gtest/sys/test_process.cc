#include "sys/process.h"

#include "support/wait_until.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using namespace ucxl;

TEST(process_status, is_that_of_the_process_whatever_its_name)
{
    const auto before = status_of_process(getpid());
    ASSERT_TRUE(before.has_value());
    EXPECT_EQ(before->state, 'R');
    EXPECT_GT(before->start_time, 0u);
    ASSERT_EQ(prctl(PR_SET_NAME, ") Z 1 (x)"), 0);
    const auto renamed = status_of_process(getpid());
    ASSERT_EQ(prctl(PR_SET_NAME, "gtest_sys"), 0);
    ASSERT_TRUE(renamed.has_value());
    EXPECT_EQ(renamed->state, 'R');
    EXPECT_EQ(renamed->start_time, before->start_time);
}

TEST(process_status, of_nobody_is_none_and_keeps_errno)
{
    errno = EXDEV;
    EXPECT_FALSE(status_of_process(0x7fffffff).has_value());
    EXPECT_EQ(errno, EXDEV);
}

TEST(watched_memory, ends_with_the_program)
{
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        std::_Exit(read(ends[0], &byte, 1) == 0 ? execlp("sleep", "sleep", "60", nullptr) : 1);
    }
    close(ends[0]);
    const auto memory = watched_memory::open(child);
    ASSERT_TRUE(memory.has_value());
    EXPECT_FALSE(memory->has_ended());
    close(ends[1]); // the child goes on
    EXPECT_TRUE(test::wait_until([&] { return memory->has_ended(); }));
    EXPECT_TRUE(watched_process(child).is_alive()) << "as another program";
    const auto next = watched_memory::open(child);
    ASSERT_TRUE(next.has_value());
    EXPECT_FALSE(next->has_ended());
    ASSERT_EQ(kill(child, SIGKILL), 0);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(next->has_ended());
    EXPECT_FALSE(watched_memory::open(child).has_value());
}

// It lives until it is killed.
pid_t start_waiting_child()
{
    const pid_t child = fork();
    if (child == 0) {
        pause();
        std::_Exit(0);
    }
    return child;
}

TEST(other_thread_of, is_none_of_a_process_with_one)
{
    const pid_t child = start_waiting_child();
    EXPECT_EQ(other_thread_of(child), std::nullopt);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    waitpid(child, nullptr, 0);
    EXPECT_EQ(other_thread_of(child), std::nullopt);
}

TEST(watched_process, is_alive_until_it_ends)
{
    const pid_t child = start_waiting_child();
    const watched_process watched(child);
    EXPECT_TRUE(watched.is_alive());
    EXPECT_FALSE(watched.has_ended());
    ASSERT_EQ(kill(child, SIGKILL), 0);
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(watched.is_alive());
    EXPECT_TRUE(watched.has_ended());
    const auto zombie = status_of_process(child);
    ASSERT_TRUE(zombie.has_value());
    EXPECT_EQ(zombie->state, 'Z');
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(watched_process(child).is_alive());
    EXPECT_FALSE(watched_process(child).has_ended()) << "it cannot tell";
}

std::atomic<unsigned> num_signals{0};

// As profilers send them. A call of the kernel that waits for nothing may be interrupted, too.
TEST(watched_process, is_alive_whatever_signals_come)
{
    const pid_t child = start_waiting_child();
    const watched_process watched(child);
    struct sigaction counting{}, before{};
    counting.sa_handler = [](int) { ++num_signals; };
    counting.sa_flags   = SA_RESTART;
    ASSERT_EQ(sigaction(SIGALRM, &counting, &before), 0);
    const itimerval often{{0, 100}, {0, 100}}, never{};
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    unsigned num_dead = 0, num_ended = 0;
    // Without a pause: one that signals interrupt so often may never end.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (num_signals < 3000 && std::chrono::steady_clock::now() < give_up) {
        num_dead += watched.is_alive() ? 0 : 1;
        num_ended += watched.has_ended() ? 1 : 0;
    }
    ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
    ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
    EXPECT_EQ(num_dead, 0u);
    EXPECT_EQ(num_ended, 0u);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(watched.is_alive());
}

// The number that the next file gets.
int next_number()
{
    const int number = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    close(number);
    return number;
}

// As in a program that closes all descriptors, also those that it did not open.
TEST(watched_process, lives_whatever_file_gets_the_number_of_the_descriptor)
{
    const pid_t child = start_waiting_child();
    const int number  = next_number();
    {
        const watched_process watched(child);
        const owned_fd other(open("/dev/zero", O_RDONLY | O_CLOEXEC)); // always readable
        EXPECT_TRUE(watched.is_alive());
        ASSERT_EQ(dup3(other.get(), number, O_CLOEXEC), number);
        EXPECT_TRUE(watched.is_alive());
        EXPECT_FALSE(watched.has_ended());
        close(number);
        EXPECT_TRUE(watched.is_alive());
        EXPECT_FALSE(watched.has_ended());
        ASSERT_EQ(dup3(other.get(), number, O_CLOEXEC), number);
        ASSERT_EQ(kill(child, SIGKILL), 0);
        waitpid(child, nullptr, 0);
        EXPECT_FALSE(watched.is_alive());
        EXPECT_TRUE(watched.has_ended());
    }
    EXPECT_EQ(close(number), 0) << "it stays open";
}

TEST(watched_memory, has_ended_if_another_file_has_the_number_of_the_descriptor)
{
    const int number = next_number();
    const auto own   = watched_memory::open(getpid());
    ASSERT_TRUE(own.has_value());
    ASSERT_FALSE(own->has_ended());
    const owned_fd other(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(dup3(other.get(), number, O_CLOEXEC), number);
    EXPECT_TRUE(own->has_ended()) << "it cannot tell";
    close(number);
}

TEST(process_identity, is_that_of_the_process_and_of_no_other)
{
    const auto own = process_identity::own();
    ASSERT_NE(own.host, 0u) << "no /proc?";
    EXPECT_EQ(own.pid, getpid());
    EXPECT_EQ(own_pid(), getpid());
    EXPECT_EQ(own.start_time, status_of_process(getpid()).value().start_time);
    EXPECT_EQ(own, process_identity::own());
    EXPECT_TRUE(may_share_memory(own, own));
    const std::function<void(process_identity&)> changes[] = {
        [](process_identity& id) { ++id.host; },
        [](process_identity& id) { ++id.pid_namespace; },
        [](process_identity& id) { ++id.user; },
    };
    for (const auto& change : changes) {
        auto other = own;
        change(other);
        EXPECT_FALSE(may_share_memory(own, other)) << "change " << &change - changes;
    }
    auto unknown = own;
    unknown.host = 0;
    EXPECT_FALSE(may_share_memory(unknown, unknown));
}

TEST(process_identity, changes_with_a_fork)
{
    const auto own    = process_identity::own();
    const pid_t child = fork();
    if (child == 0) {
        const auto now = process_identity::own();
        _exit(now.pid == getpid() && now.pid != own.pid && may_share_memory(own, now) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace
