#include "softhca/shim/host/process_move.h"
#include "softhca/shim/system/fault_signals.h"

#include "support/forked_process.h"
#include "support/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca
{
namespace
{

constexpr std::size_t page = 4096;

// Mapped at the same addresses in the test and its children: made before the fork, then private to each.
struct memory {
    std::byte* start;
    std::size_t bytes;

    explicit memory(std::size_t size)
        : start(static_cast<std::byte*>(
              ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          bytes(size)
    {
    }
    ~memory() { ::munmap(start, bytes); }
    std::uintptr_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(start + offset); }
};

void fill(std::byte* start, std::size_t bytes, unsigned seed)
{
    for (std::size_t i = 0; i < bytes; ++i) {
        start[i] = static_cast<std::byte>(seed + i * 31 + i / 251);
    }
}

class process_move : public ::testing::Test
{
protected:
    process_move()
    {
        install_fault_handlers([](int, siginfo_t&, void*) { return false; });
    }
};

TEST_F(process_move, writes_and_reads_another_process)
{
    memory both(1 << 20);
    fill(both.start, both.bytes, 1);
    ucxl::test::forked_process peer([&both](ucxl::test::forked_process& self) {
        fill(both.start, both.bytes, 9);
        self.ready();
        self.wait();
        std::vector<std::byte> expected(both.bytes);
        fill(expected.data(), expected.size(), 1);
        EXPECT_EQ(std::memcmp(both.start, expected.data(), both.bytes), 0);
    });
    std::vector<std::byte> read(both.bytes);
    process_mover reading;
    EXPECT_TRUE(reading.add({.process = 0, .address = reinterpret_cast<std::uintptr_t>(read.data())},
                            {.process = peer.id(), .address = both.at(0)}, both.bytes));
    EXPECT_EQ(reading.finish(), move_status::ok);
    std::vector<std::byte> expected(both.bytes);
    fill(expected.data(), expected.size(), 9);
    EXPECT_EQ(read, expected);
    process_mover writing;
    EXPECT_TRUE(
        writing.add({.process = peer.id(), .address = both.at(0)}, {.process = 0, .address = both.at(0)}, both.bytes));
    EXPECT_EQ(writing.finish(), move_status::ok);
    peer.go_on();
    EXPECT_EQ(peer.join(), 0);
}

TEST_F(process_move, between_two_others_it_goes_through_us)
{
    memory all(3 << 20);
    const auto body = [&all](unsigned seed) {
        return [&all, seed](ucxl::test::forked_process& self) {
            fill(all.start, all.bytes, seed);
            self.ready();
            self.wait();
        };
    };
    ucxl::test::forked_process from(body(5));
    ucxl::test::forked_process to(body(7));
    process_mover mover;
    mover.add({.process = to.id(), .address = all.at(100)}, {.process = from.id(), .address = all.at(3)},
              all.bytes - 200);
    EXPECT_EQ(mover.finish(), move_status::ok);
    std::vector<std::byte> found(all.bytes);
    process_mover check;
    check.add({.process = 0, .address = reinterpret_cast<std::uintptr_t>(found.data())},
              {.process = to.id(), .address = all.at(0)}, all.bytes);
    EXPECT_EQ(check.finish(), move_status::ok);
    std::vector<std::byte> expected(all.bytes);
    std::vector<std::byte> source(all.bytes);
    fill(expected.data(), expected.size(), 7);
    fill(source.data(), source.size(), 5);
    std::copy_n(source.begin() + 3, all.bytes - 200, expected.begin() + 100);
    EXPECT_EQ(found, expected);
}

TEST_F(process_move, a_fault_says_which_side_and_what_came_before_it_arrived)
{
    memory both(4 * page);
    fill(both.start, both.bytes, 1);
    ucxl::test::forked_process peer([&both](ucxl::test::forked_process& self) {
        ::munmap(both.start + 2 * page, page);
        ::mprotect(both.start + 3 * page, page, PROT_READ);
        self.ready();
        self.wait();
    });
    const pid_t id = peer.id();
    std::vector<std::byte> here(16);
    const auto own = reinterpret_cast<std::uintptr_t>(here.data());
    fill(here.data(), here.size(), 77);
    const std::vector<std::byte> sent = here;
    {
        process_mover mover;
        mover.add({.process = id, .address = both.at(2 * page - 8)}, {.process = 0, .address = own}, 16);
        EXPECT_EQ(mover.finish(), move_status::fault_to);
    }
    {
        process_mover mover;
        mover.add({.process = id, .address = both.at(3 * page)}, {.process = 0, .address = own}, 16);
        EXPECT_EQ(mover.finish(), move_status::fault_to);
    }
    {
        here.assign(here.size(), std::byte{0});
        process_mover mover;
        mover.add({.process = 0, .address = own}, {.process = id, .address = both.at(2 * page - 8)}, 16);
        EXPECT_EQ(mover.finish(), move_status::fault_from);
        EXPECT_EQ(std::memcmp(here.data(), sent.data(), 8), 0); // as written before the fault above
    }
    ::munmap(both.start + page, page);
    {
        process_mover mover;
        mover.add({.process = id, .address = both.at(0)}, {.process = 0, .address = both.at(page - 8)}, 16);
        EXPECT_EQ(mover.finish(), move_status::fault_from);
    }
    {
        process_mover mover;
        mover.add({.process = 0, .address = both.at(page - 8)}, {.process = id, .address = both.at(0)}, 16);
        EXPECT_EQ(mover.finish(), move_status::fault_to);
    }
}

TEST_F(process_move, a_process_that_ended_is_gone)
{
    memory both(page);
    auto peer      = std::make_unique<ucxl::test::forked_process>([](ucxl::test::forked_process& self) {
        self.ready();
        self.wait();
    });
    const pid_t id = peer->id();
    peer->kill();
    process_mover writing;
    writing.add({.process = id, .address = both.at(0)}, {.process = 0, .address = both.at(0)}, 8);
    EXPECT_EQ(writing.finish(), move_status::gone_to);
    process_mover reading;
    reading.add({.process = 0, .address = both.at(0)}, {.process = id, .address = both.at(0)}, 8);
    EXPECT_EQ(reading.finish(), move_status::gone_from);
}

TEST_F(process_move, a_process_that_is_killed_meanwhile_is_gone_and_nothing_hangs)
{
    memory both(8 << 20);
    fill(both.start, both.bytes, 1);
    for (int round = 0; round < 10; ++round) {
        ucxl::test::forked_process peer([](ucxl::test::forked_process& self) {
            self.ready();
            self.wait();
        });
        const pid_t killer = ::fork();
        if (killer == 0) {
            ::usleep(static_cast<useconds_t>(round * 300)); // synchronises nothing: a kill at one of many moments
            ::kill(peer.id(), SIGKILL);
            ::_exit(0);
        }
        move_status status = move_status::ok;
        while (status == move_status::ok) {
            process_mover mover;
            mover.add({.process = peer.id(), .address = both.at(0)}, {.process = 0, .address = both.at(0)}, both.bytes);
            status = mover.finish();
        }
        EXPECT_EQ(status, move_status::gone_to);
        ::waitpid(killer, nullptr, 0);
        EXPECT_EQ(peer.join(), 128 + SIGKILL);
    }
}

// Compared with copying byte by byte.
TEST_F(process_move, random_runs_in_both_directions_arrive_as_byte_by_byte)
{
    ucxl::test::random random(ucxl::test::run_seed());
    memory both(64 * page);
    fill(both.start, both.bytes, 3);
    ucxl::test::forked_process peer([](ucxl::test::forked_process& self) {
        self.ready();
        self.wait();
    });
    std::array<std::vector<std::byte>, 2> expected; // ours, the peer's
    expected.fill(std::vector<std::byte>(both.start, both.start + both.bytes));
    for (int round = 0; round < 300; ++round) {
        process_mover mover;
        const int runs = 1 + static_cast<int>(random.below(100));
        for (int i = 0; i < runs; ++i) {
            const std::size_t length = random.below(600);
            const std::size_t from   = random.below(both.bytes / 2 - 600);                  // sources below,
            const std::size_t to     = both.bytes / 2 + random.below(both.bytes / 2 - 600); // destinations above
            const std::size_t source = random.below(2);
            const std::size_t target = random.below(2);
            ASSERT_TRUE(mover.add({.process = target != 0 ? peer.id() : 0, .address = both.at(to)},
                                  {.process = source != 0 ? peer.id() : 0, .address = both.at(from)}, length));
            for (std::size_t byte = 0; byte < length; ++byte) {
                expected[target][to + byte] = expected[source][from + byte];
            }
        }
        ASSERT_EQ(mover.finish(), move_status::ok);
    }
    EXPECT_EQ(std::memcmp(both.start, expected[0].data(), both.bytes), 0);
    std::vector<std::byte> theirs(both.bytes);
    process_mover check;
    check.add({.process = 0, .address = reinterpret_cast<std::uintptr_t>(theirs.data())},
              {.process = peer.id(), .address = both.at(0)}, both.bytes);
    EXPECT_EQ(check.finish(), move_status::ok);
    EXPECT_EQ(theirs, expected[1]);
}

} // namespace
} // namespace ucxl::softhca
