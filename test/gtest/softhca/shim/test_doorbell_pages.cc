#include "softhca/shim/doorbell/pages.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/system/fault_signals.h"

#include "support/forked_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ucxl::softhca
{
namespace
{

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::size_t page         = 4096;
constexpr std::uint32_t first_uar  = 5;
constexpr std::uint32_t second_uar = 6;

constexpr unsigned most_recorded = 100;

struct recorder final : doorbell_taker {
    // Signal handlers must not allocate.
    recorder()
    {
        rung.reserve(most_recorded);
        uars.reserve(most_recorded);
    }

    std::mutex lock; // for rung and uars: threads ring at once
    std::vector<std::pair<std::size_t, std::uint64_t>> rung;
    std::vector<std::uint32_t> uars;
    std::atomic<unsigned> count = 0;
    unsigned missed             = 0;

    void ring(std::uint32_t uar, std::size_t offset, std::uint64_t value) override
    {
        if (count.fetch_add(1) < most_recorded) {
            const std::lock_guard guard(lock);
            rung.emplace_back(offset, value);
            uars.push_back(uar);
        }
    }
    void missed_some() override { ++missed; }
    void lost_track() override { ++missed; }
};

doorbell_pages* pages = nullptr;
recorder* heard       = nullptr;
// Closes the page once before the interrupted thread goes on, as another thread may that has just made its own step.
std::atomic<bool> closes_page = false;

bool handle_fault(int signal, siginfo_t& fault, void* context)
{
    const bool handled = pages != nullptr && pages->handle(signal, fault, context, *heard);
    if (handled && closes_page.exchange(false)) {
        const auto address = reinterpret_cast<std::uintptr_t>(fault.si_addr);
        ::mprotect(reinterpret_cast<void*>(address & ~(page - 1)), page, PROT_READ);
    }
    return handled;
}

// A file with the layout of the fabric's, and two adjacent doorbell pages mapped.
class doorbells : public ::testing::Test
{
protected:
    doorbells()
    {
        pages = &_pages;
        heard = &_heard;
        install_fault_handlers(handle_fault);
        _file = ::memfd_create("doorbells", MFD_CLOEXEC);
        EXPECT_EQ(::ftruncate(_file, static_cast<off_t>(fabric_memory::uar_offset(100))), 0);
        _page = static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, _file,
                                               static_cast<off_t>(fabric_memory::uar_offset(first_uar))));
        EXPECT_NE(_page, MAP_FAILED);
    }

    ~doorbells() override
    {
        pages = nullptr;
        ::munmap(_page, 2 * page);
        ::close(_file);
    }

    void locate()
    {
        struct stat found{};
        ::fstat(_file, &found);
        _pages.locate(found.st_dev, found.st_ino);
    }

    template <typename Value>
    volatile Value& at(std::size_t offset)
    {
        return *reinterpret_cast<volatile Value*>(_page + offset);
    }

    doorbell_pages _pages;
    recorder _heard;
    int _file;
    std::byte* _page;
};

TEST_F(doorbells, a_store_to_a_trapping_page_is_a_doorbell_and_not_a_store)
{
    _pages.add(first_uar, true);
    locate();
    at<std::uint64_t>(0x800) = 0x1122334455667788;
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 0x1122334455667788)));
    EXPECT_THAT(_heard.uars, ElementsAre(first_uar));
    EXPECT_EQ(at<std::uint64_t>(0x800), 0U);
}

TEST_F(doorbells, pages_that_are_one_mapping_are_told_apart)
{
    _pages.add(second_uar, true);
    _pages.add(first_uar, true);
    locate();
    at<std::uint64_t>(0x20)        = 1;
    at<std::uint64_t>(page + 0x20) = 2;
    EXPECT_THAT(_heard.uars, ElementsAre(first_uar, second_uar));
}

TEST_F(doorbells, an_open_page_is_plain_memory_until_it_traps)
{
    _pages.add(first_uar, false);
    locate();
    EXPECT_EQ(_pages.address(first_uar), _page);
    at<std::uint64_t>(0x800) = 7;
    EXPECT_TRUE(_heard.rung.empty());
    EXPECT_EQ(at<std::uint64_t>(0x800), 7U);
    _pages.make_trapping_at(_page + 0x800);
    EXPECT_TRUE(_pages.traps(first_uar));
    at<std::uint64_t>(0x800) = 8;
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 8)));
}

TEST_F(doorbells, a_page_that_is_mapped_later_is_found_later)
{
    _pages.add(50, true);
    locate();
    EXPECT_EQ(_pages.address(50), nullptr);
    auto* const late = static_cast<std::byte*>(
        ::mmap(nullptr, page, PROT_WRITE, MAP_SHARED, _file, static_cast<off_t>(fabric_memory::uar_offset(50))));
    locate();
    EXPECT_EQ(_pages.address(50), late);
    *reinterpret_cast<volatile std::uint64_t*>(late + 0x900) = 3;
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x900, 3)));
    _pages.remove(50);
    EXPECT_EQ(_pages.address(50), nullptr);
    ::munmap(late, page);
}

TEST_F(doorbells, two_halves_are_one_doorbell)
{
    _pages.add(first_uar, true);
    locate();
    at<std::uint32_t>(0x20) = 0x55667788;
    EXPECT_TRUE(_heard.rung.empty());
    at<std::uint32_t>(0x24) = 0x11223344;
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x20, 0x1122334455667788)));
}

#if defined(__x86_64__)

// As UCX copies a WQE to the page.
[[gnu::noinline]] void copy_block(volatile std::byte* to, const std::byte* from, __m128i& last)
{
    asm volatile("movdqu (%1), %%xmm5\n"
                 "movups %%xmm5, (%0)\n"
                 "movdqu 0x10(%1), %%xmm5\n"
                 "movups %%xmm5, 0x10(%0)\n"
                 "movdqu 0x20(%1), %%xmm5\n"
                 "movups %%xmm5, 0x20(%0)\n"
                 "movdqu 0x30(%1), %%xmm5\n"
                 "movups %%xmm5, 0x30(%0)\n"
                 "movdqu %%xmm5, (%2)\n"
                 :
                 : "r"(to), "r"(from), "r"(&last)
                 : "xmm5", "memory");
}

TEST_F(doorbells, a_wqe_that_is_copied_is_one_doorbell_and_the_copy_goes_on_behind_it)
{
    _pages.add(first_uar, true);
    locate();
    std::array<std::byte, 64> wqe;
    for (std::size_t i = 0; i < wqe.size(); ++i) {
        wqe[i] = static_cast<std::byte>(i + 1);
    }
    __m128i last{};
    copy_block(_page + 0x900, wqe.data(), last);
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x900, 0x0807060504030201)));
    EXPECT_EQ(std::memcmp(&last, wqe.data() + 48, 16), 0); // NOLINT(bugprone-suspicious-memory-comparison)
    _heard.rung.clear();
    copy_block(_page + 0x940, wqe.data(), last); // its second block
    EXPECT_TRUE(_heard.rung.empty());
}

TEST_F(doorbells, an_unknown_instruction_is_executed_and_its_store_found)
{
    _pages.add(first_uar, true);
    locate();
    std::uint64_t value = 0x1234;
    asm volatile("xchg %0, (%1)" : "+r"(value) : "r"(_page + 0x800) : "memory");
    EXPECT_EQ(value, 0U);
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 0x1234)));
    EXPECT_EQ(_heard.missed, 1U);
    _heard.rung.clear();
    const std::uint64_t source = 0x5678;
    const void* from           = &source;
    void* to                   = _page + 0x900;
    std::size_t length         = 8;
    asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(length) : : "memory");
    EXPECT_FALSE(_heard.rung.empty());
    EXPECT_EQ(_heard.rung.back(), std::pair(std::size_t{0x900}, std::uint64_t{0x5678}));
    _heard.rung.clear();
    at<std::uint64_t>(0x800) = 9; // traps again
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 9)));
}

TEST_F(doorbells, a_page_closed_under_an_unknown_instruction_traps_again_behind_it)
{
    _pages.add(first_uar, true);
    locate();
    closes_page         = true;
    std::uint64_t value = 0x1234;
    asm volatile("xchg %0, (%1)" : "+r"(value) : "r"(_page + 0x800) : "memory");
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 0x1234)));
    _heard.rung.clear();
    at<std::uint64_t>(0x800) = 9;
    EXPECT_THAT(_heard.rung, ElementsAre(Pair(0x800, 9)));
}

#endif

TEST_F(doorbells, threads_ring_at_once)
{
    _pages.add(first_uar, true);
    locate();
    constexpr unsigned rounds = 2000;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < 3; ++i) {
            threads.emplace_back([this, i] {
                for (unsigned round = 0; round < rounds; ++round) {
                    at<std::uint64_t>(0x800 + 0x100 * i) = round;
                }
            });
        }
    }
    EXPECT_EQ(_heard.count.load(), 3 * rounds);
}

TEST_F(doorbells, in_a_forked_child_stores_go_nowhere)
{
    _pages.add(first_uar, true);
    locate();
    ucxl::test::forked_process child([this](ucxl::test::forked_process&) {
        _pages.disown();
        at<std::uint64_t>(0x800) = 1;
        EXPECT_TRUE(_heard.rung.empty());
    });
    EXPECT_EQ(child.join(), 0);
}

TEST_F(doorbells, reading_elsewhere_and_other_read_only_memory_are_not_ours)
{
    ucxl::test::forked_process child([this](ucxl::test::forked_process&) {
        _pages.add(first_uar, true);
        locate();
        void* const other                  = ::mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile int*>(other) = 1;
    });
    EXPECT_EQ(child.join(), 128 + SIGSEGV);
}

} // namespace
} // namespace ucxl::softhca
