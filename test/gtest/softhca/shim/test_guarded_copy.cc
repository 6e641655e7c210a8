#include "softhca/shim/system/fault_signals.h"
#include "softhca/shim/system/guarded_copy.h"

#include "support/forked_process.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca
{
namespace
{

constexpr std::size_t page = 4096;

// An aligned address below all those that the kernel gives out.
constexpr std::uintptr_t nowhere = 4096;

// An unmapped address that the compiler cannot know.
void store_at(std::uintptr_t address)
{
    static volatile std::uintptr_t hidden;
    hidden                                                   = address;
    *reinterpret_cast<volatile int*>(std::uintptr_t{hidden}) = 1;
}

// Two pages; the second is inaccessible. (If it were not mapped, other threads could get memory there.)
class half_mapped
{
public:
    explicit half_mapped(int protection = PROT_READ | PROT_WRITE)
    {
        _start = static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ::mprotect(_start, page, protection);
    }
    ~half_mapped() { ::munmap(_start, 2 * page); }
    std::byte* end() const { return _start + page; }

private:
    std::byte* _start;
};

class guarded : public ::testing::Test
{
protected:
    guarded()
    {
        install_fault_handlers([](int, siginfo_t&, void*) { return false; });
    }
};

TEST_F(guarded, copies_every_length)
{
    std::vector<std::byte> from(300);
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::byte>(i * 7);
    }
    for (std::size_t length = 0; length < from.size(); ++length) {
        std::vector<std::byte> to(from.size(), std::byte{0xee});
        ASSERT_EQ(guarded_copy(to.data(), from.data(), length), copy_status::ok);
        EXPECT_EQ(std::memcmp(to.data(), from.data(), length), 0);
        EXPECT_EQ(to[length], std::byte{0xee});
    }
}

TEST_F(guarded, missing_memory_ends_the_copy_and_says_which_side)
{
    const half_mapped memory;
    std::array<std::byte, 64> good{};
    for (const std::size_t before : {0, 1, 8, 63}) {
        EXPECT_EQ(guarded_copy(memory.end() - before, good.data(), 64), copy_status::fault_to) << before;
        EXPECT_EQ(guarded_copy(good.data(), memory.end() - before, 64), copy_status::fault_from) << before;
    }
}

TEST_F(guarded, read_only_memory_refuses_writing_and_gives_its_bytes)
{
    const half_mapped memory(PROT_READ);
    std::array<std::byte, 8> good{};
    EXPECT_EQ(guarded_copy(memory.end() - 8, good.data(), 8), copy_status::fault_to);
    EXPECT_EQ(guarded_copy(good.data(), memory.end() - 8, 8), copy_status::ok);
}

TEST_F(guarded, addresses_that_no_memory_can_have_are_faults)
{
    std::array<std::byte, 64> good{};
    for (const std::uintptr_t wild :
         {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0x8000'0000'0000}, std::uintptr_t{0xdead'beef'0000'0000},
          ~std::uintptr_t{0} - 63, ~std::uintptr_t{0} - 7, std::uintptr_t{0xffff'8000'0000'0000}}) {
        EXPECT_EQ(guarded_copy(reinterpret_cast<void*>(wild), good.data(), 64), copy_status::fault_to) << wild;
        EXPECT_EQ(guarded_copy(good.data(), reinterpret_cast<void*>(wild), 64), copy_status::fault_from) << wild;
    }
}

TEST_F(guarded, a_file_that_became_shorter_is_a_fault)
{
    const int file = ::memfd_create("short", 0);
    ASSERT_EQ(::ftruncate(file, page), 0);
    void* const memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_EQ(::ftruncate(file, 0), 0);
    std::array<std::byte, 8> good{};
    EXPECT_EQ(guarded_copy(memory, good.data(), 8), copy_status::fault_to);
    EXPECT_EQ(guarded_copy(good.data(), memory, 8), copy_status::fault_from);
    ::munmap(memory, page);
    ::close(file);
}

TEST_F(guarded, threads_fault_independently)
{
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            const half_mapped memory;
            std::array<std::byte, 64> good{};
            for (int round = 0; round < 500; ++round) {
                ASSERT_EQ(guarded_copy(memory.end() - 8, good.data(), 64), copy_status::fault_to);
                ASSERT_EQ(guarded_copy(memory.end() - 64, good.data(), 64), copy_status::ok);
            }
        });
    }
}

int seen_signal = 0;

TEST_F(guarded, a_fault_elsewhere_still_kills)
{
    ucxl::test::forked_process child([](ucxl::test::forked_process&) { store_at(nowhere); });
    EXPECT_EQ(child.join(), 128 + SIGSEGV);
}

TEST_F(guarded, a_programs_own_handler_gets_foreign_faults_and_not_ours)
{
    ucxl::test::forked_process child([](ucxl::test::forked_process&) {
        struct sigaction wanted = {};
        wanted.sa_sigaction     = [](int number, siginfo_t* fault, void*) {
            seen_signal = number;
            ::_exit(fault->si_addr == reinterpret_cast<void*>(16) ? 42 : 43);
        };
        wanted.sa_flags         = SA_SIGINFO;
        struct sigaction before = {};
        change_action(SIGSEGV, &wanted, &before);
        EXPECT_EQ(before.sa_handler, SIG_DFL);
        change_action(SIGSEGV, nullptr, &before);
        EXPECT_EQ(before.sa_sigaction, wanted.sa_sigaction);
        std::array<std::byte, 8> good{};
        EXPECT_EQ(guarded_copy(good.data(), reinterpret_cast<void*>(8), 8), copy_status::fault_from);
        EXPECT_EQ(seen_signal, 0);
        store_at(16);
    });
    EXPECT_EQ(child.join(), 42);
}

TEST_F(guarded, a_handler_that_was_there_before_is_called_behind_ours)
{
    ucxl::test::forked_process child([](ucxl::test::forked_process&) {
        std::signal(SIGSEGV, SIG_DFL);
        struct sigaction wanted = {};
        wanted.sa_handler       = [](int) { ::_exit(17); };
        ::sigaction(SIGSEGV, &wanted, nullptr); // replaces ours, as a system call would
        install_fault_handlers([](int, siginfo_t&, void*) { return false; });
        std::array<std::byte, 8> good{};
        EXPECT_EQ(guarded_copy(good.data(), nullptr, 8), copy_status::fault_from);
        store_at(nowhere);
    });
    EXPECT_EQ(child.join(), 17);
}

TEST_F(guarded, a_signal_that_was_sent_is_no_fault)
{
    ucxl::test::forked_process ignoring([](ucxl::test::forked_process&) {
        struct sigaction wanted = {};
        wanted.sa_handler       = SIG_IGN;
        change_action(SIGSEGV, &wanted, nullptr);
        ::raise(SIGSEGV);
    });
    EXPECT_EQ(ignoring.join(), 0);
    ucxl::test::forked_process dying([](ucxl::test::forked_process&) { ::raise(SIGSEGV); });
    EXPECT_EQ(dying.join(), 128 + SIGSEGV);
}

TEST(masks, never_hold_back_the_signals_of_faults)
{
    sigset_t all;
    sigfillset(&all);
    const sigset_t less = without_fault_signals(all);
    EXPECT_EQ(sigismember(&less, SIGSEGV), 0);
    EXPECT_EQ(sigismember(&less, SIGBUS), 0);
    EXPECT_EQ(sigismember(&less, SIGTERM), 1);
}

} // namespace
} // namespace ucxl::softhca
