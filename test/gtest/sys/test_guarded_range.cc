// Mappings whose file becomes shorter while they are used.
#include "support/must.h"
#include "sys/fd.h"
#include "sys/guarded_range.h"
#include "sys/mapping.h"
#include "sys/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using ucxl::test::must;

// Of several pages, filled with ones.
class short_lived_file
{
public:
    short_lived_file() : _fd(memfd_create("short", MFD_CLOEXEC))
    {
        EXPECT_EQ(0, ftruncate(_fd.get(), static_cast<off_t>(length)));
        memory = must(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, _fd.get(), 0));
        std::memset(memory.start(), 1, length);
    }

    void cut() { EXPECT_EQ(0, ftruncate(_fd.get(), 0)); }
    std::byte first() const { return *const_cast<volatile std::byte*>(memory.start()); }

    const std::uint64_t length = 4 * page_length();
    owned_mapping memory;

private:
    owned_fd _fd;
};

TEST(guarded_range, becomes_zeroed_memory_when_its_file_becomes_shorter)
{
    short_lived_file file, other;
    const auto guard = must(guarded_range::create(file.memory.start(), file.length));
    const auto kept  = must(guarded_range::create(other.memory.start(), other.length));
    EXPECT_EQ(file.first(), std::byte{1});
    EXPECT_FALSE(guard.was_cut());
    file.cut();
    EXPECT_EQ(file.first(), std::byte{0});
    EXPECT_TRUE(guard.was_cut());
    file.memory.start()[file.length - 1] = std::byte{2}; // goes nowhere
    EXPECT_FALSE(kept.was_cut());
    EXPECT_EQ(other.first(), std::byte{1});
}

TEST(guarded_range, works_behind_a_handler_that_came_later)
{
    short_lived_file file;
    const auto guard = must(guarded_range::create(file.memory.start(), file.length));
    struct sigaction before, later{};
    later.sa_handler = [](int) { _exit(3); };
    ASSERT_EQ(0, sigaction(SIGBUS, &later, &before));
    guarded_range::renew_handler();
    file.cut();
    EXPECT_EQ(file.first(), std::byte{0});
    ASSERT_EQ(0, sigaction(SIGBUS, &before, nullptr));
}

TEST(guarded_range, works_in_a_thread_that_blocks_all_signals)
{
    short_lived_file file;
    const auto guard = must(guarded_range::create(file.memory.start(), file.length));
    std::thread([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        guarded_range::renew_handler();
        file.cut();
        EXPECT_EQ(file.first(), std::byte{0});
    }).join();
    EXPECT_TRUE(guard.was_cut());
}

// Others come and go at addresses around it, in the same places of the table.
TEST(guarded_range, is_all_that_becomes_zeroed)
{
    constexpr int turns      = 300;
    const std::uint64_t page = page_length();
    const auto around = must(owned_mapping::map(64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(around.start(), 1, around.length());
    const std::jthread others([&](const std::stop_token& ends) {
        while (!ends.stop_requested()) {
            must(guarded_range::create(around.start(), page));
            must(guarded_range::create(around.start() + 63 * page, page));
        }
    });
    std::byte* const middle = around.start() + 32 * page;
    for (int turn = 0; turn < turns; ++turn) {
        const owned_fd file(memfd_create("short", MFD_CLOEXEC)); // shorter than its mapping
        ASSERT_NE(mmap(middle, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0), MAP_FAILED);
        const auto guard = must(guarded_range::create(middle, page));
        static_cast<void>(std::byte{*const_cast<volatile std::byte*>(middle)});
        ASSERT_TRUE(guard.was_cut());
        ASSERT_EQ(std::count(around.start(), around.start() + 64 * page, std::byte{1}), 63 * page) << "turn " << turn;
    }
}

// Touches what is gone of a file that nobody guards, while another one is guarded.
struct unguarded_cut {
    unguarded_cut() { other.cut(); }
    void touch() const { static_cast<void>(other.first()); }

    short_lived_file guarded, other;
    guarded_range guard = must(guarded_range::create(guarded.memory.start(), guarded.length));
};

void touch_behind(void (*handler)(int))
{
    signal(SIGBUS, handler);
    unguarded_cut().touch();
}

sigjmp_buf back;

// A program that goes on elsewhere after each signal. Ends with the number of signals.
void touch_and_jump_back()
{
    signal(SIGBUS, [](int) { siglongjmp(back, 1); });
    const unguarded_cut cut;
    static int turn, caught; // not changed by the jump
    for (turn = 0, caught = 0; turn < 5; ++turn) {
        if (sigsetjmp(back, 1) == 0) {
            cut.touch();
        } else {
            ++caught;
        }
    }
    _exit(caught);
}

void touch_with_handlers_that_call_each_other()
{
    signal(SIGBUS, SIG_DFL);
    const unguarded_cut cut;
    static struct sigaction ours;
    struct sigaction chained{};
    chained.sa_flags     = SA_SIGINFO | SA_NODEFER;
    chained.sa_sigaction = [](int number, siginfo_t* about, void* state) { ours.sa_sigaction(number, about, state); };
    sigaction(SIGBUS, &chained, &ours);
    guarded_range::renew_handler();
    cut.touch();
}

TEST(guarded_range, leaves_other_bus_errors_as_they_were)
{
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(touch_behind(SIG_DFL), testing::KilledBySignal(SIGBUS), "");
    EXPECT_EXIT(touch_behind([](int) { _exit(7); }), testing::ExitedWithCode(7), "");
    EXPECT_EXIT(touch_and_jump_back(), testing::ExitedWithCode(5), "");
    EXPECT_EXIT(touch_with_handlers_that_call_each_other(), testing::KilledBySignal(SIGBUS), "");
}

TEST(guarded_range, is_limited_in_number)
{
    short_lived_file file;
    std::vector<guarded_range> all;
    for (std::size_t i = 0; i < guarded_range::max_ranges; ++i) {
        all.push_back(must(guarded_range::create(file.memory.start(), file.length)));
    }
    const auto refused = guarded_range::create(file.memory.start(), file.length);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::no_resource);
    all.clear();
    EXPECT_TRUE(guarded_range::create(file.memory.start(), file.length).has_value());
}

} // namespace
