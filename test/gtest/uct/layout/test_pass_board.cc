// Boards: which pieces of a shared pass each process takes, and what happens to those of a process that ends, or of one
// that writes anything into the board.
#include "support/forked_process.h"
#include "support/random.h"
#include "support/run_tests.h"
#include "support/wait_until.h"
#include "uct/layout/peer/board_file.h"
#include "uct/layout/peer/pass_board.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;
using namespace std::chrono_literals;

namespace
{

constexpr std::uint64_t piece = 4096;

pass_request request_of(std::uint32_t num_pieces)
{
    return {.key              = {},
            .address          = 0,
            .owner_address    = 0,
            .owner_generation = 1,
            .length           = num_pieces * piece - 1,
            .piece            = piece,
            .direction        = pass_direction::to_owner};
}

using pieces = std::vector<std::uint32_t>;

pieces take_all(posted_pass& pass)
{
    pieces taken;
    while (const auto next = pass.take()) {
        taken.push_back(*next);
    }
    return taken;
}

pieces finish(posted_pass& pass, bool is_gone = false)
{
    pieces copied;
    pass.finish([&] { return is_gone; }, [&](std::uint32_t left) { copied.push_back(left); });
    return copied;
}

std::optional<found_pass> look(pass_board& board)
{
    for (pass_slot& slot : board.slots) {
        if (auto found = found_pass::look(slot)) {
            return found;
        }
    }
    return std::nullopt;
}

std::optional<found_pass> found_on(pass_board& board, const pass_request& request)
{
    auto found = look(board);
    EXPECT_TRUE(found && found->request().length == request.length);
    return found;
}

class pass_boards : public testing::Test
{
protected:
    pass_board& board = shared<pass_board>();
};

TEST_F(pass_boards, a_requester_that_nobody_helps_takes_all_pieces)
{
    posted_pass pass(board, request_of(5));
    EXPECT_EQ(take_all(pass), (pieces{0, 1, 2, 3, 4}));
    EXPECT_EQ(finish(pass), pieces{});
    EXPECT_FALSE(look(board));
}

TEST_F(pass_boards, both_take_pieces_from_opposite_ends)
{
    const auto request = request_of(5);
    posted_pass pass(board, request);
    auto found = found_on(board, request);
    EXPECT_EQ(pass.take(), 0u);
    EXPECT_EQ(found->take(), 4u);
    EXPECT_EQ(found->offset_of(4), 4 * piece);
    EXPECT_EQ(found->length_of(4), piece - 1) << "the last one is shorter";
    EXPECT_EQ(found->length_of(3), piece);
    EXPECT_EQ(pass.take(), 1u);
    EXPECT_EQ(found->take(), 3u);
    found->end(true);
    EXPECT_EQ(pass.take(), 2u);
    EXPECT_EQ(pass.take(), std::nullopt);
    EXPECT_EQ(found->take(), std::nullopt);
    found->end(true);
    EXPECT_EQ(finish(pass), pieces{});
}

TEST_F(pass_boards, a_requester_does_what_the_owner_took_and_could_not_do)
{
    const auto request = request_of(4);
    posted_pass pass(board, request);
    auto found = found_on(board, request);
    found->take();
    found->take();
    EXPECT_EQ(take_all(pass), (pieces{0, 1}));
    found->end(true);
    found->end(false);
    EXPECT_EQ(finish(pass), (pieces{2, 3}));
}

TEST_F(pass_boards, a_requester_does_what_an_owner_that_is_gone_took)
{
    const auto request = request_of(4);
    posted_pass pass(board, request);
    auto found = found_on(board, request);
    found->take();
    EXPECT_EQ(take_all(pass), (pieces{0, 1, 2}));
    EXPECT_EQ(finish(pass, true), pieces{3});
}

TEST_F(pass_boards, an_owner_that_ends_late_does_not_count_for_the_next_pass)
{
    const auto request = request_of(4);
    std::optional<found_pass> late;
    {
        posted_pass pass(board, request);
        late = found_on(board, request);
        late->take();
        take_all(pass);
        finish(pass, true);
    }
    posted_pass next(board, request);
    auto found = found_on(board, request);
    EXPECT_EQ(late->take(), std::nullopt);
    EXPECT_EQ(found->take(), 3u);
    EXPECT_EQ(take_all(next), (pieces{0, 1, 2}));
    late->end(true);
    EXPECT_EQ(finish(next, true), pieces{3}) << "it waited for the piece until the owner was gone";
}

TEST_F(pass_boards, passes_beyond_the_slots_are_done_alone)
{
    std::vector<std::unique_ptr<posted_pass>> held;
    for (std::size_t i = 0; i < board.slots.size(); ++i) {
        held.push_back(std::make_unique<posted_pass>(board, request_of(2)));
    }
    const auto posted = board.posted.load();
    posted_pass alone(board, request_of(3));
    EXPECT_EQ(board.posted.load(), posted);
    EXPECT_EQ(take_all(alone), (pieces{0, 1, 2}));
    EXPECT_EQ(finish(alone), pieces{});
    EXPECT_EQ(take_all(*held[0]), (pieces{0, 1}));
    finish(*held[0]);
    posted_pass again(board, request_of(2));
    EXPECT_EQ(board.posted.load(), posted + 1) << "a slot is free again";
}

TEST_F(pass_boards, slots_of_requesters_that_ended_are_used_again)
{
    forked_process requester([&](forked_process& self) {
        std::vector<std::unique_ptr<posted_pass>> held;
        for (std::size_t i = 0; i < board.slots.size(); ++i) {
            held.push_back(std::make_unique<posted_pass>(board, request_of(2)));
        }
        self.ready();
        self.wait();
    });
    const auto posted = board.posted.load();
    EXPECT_EQ(posted, board.slots.size());
    requester.kill();
    const auto request = request_of(7);
    posted_pass pass(board, request);
    EXPECT_EQ(board.posted.load(), posted + 1);
    EXPECT_EQ(take_all(pass).size(), 7u);
    EXPECT_EQ(finish(pass), pieces{});
}

// With the words of the next request before the old pass is closed, an owner could do a mixture of both.
TEST_F(pass_boards, the_pass_of_a_requester_that_ended_is_closed_with_its_slot)
{
    std::optional<found_pass> found;
    forked_process requester([&](forked_process& self) {
        std::vector<std::unique_ptr<posted_pass>> held;
        for (std::size_t i = 0; i < board.slots.size(); ++i) {
            held.push_back(std::make_unique<posted_pass>(board, request_of(2)));
        }
        self.ready();
        self.wait();
    });
    requester.kill();
    found = found_pass::look(board.slots[0]);
    ASSERT_TRUE(found);
    const posted_pass next(board, request_of(3));
    EXPECT_EQ(found->take(), std::nullopt);
}

TEST(board_files, tell_whether_their_owner_became_another_program)
{
    auto& place = shared<board_place>();
    forked_process owner([&](forked_process& self) {
        const auto created = board_file::create();
        place              = (*created)->place();
        self.ready();
        self.wait();
        execlp("sleep", "sleep", "100", nullptr);
    });
    const auto board = peer_board::open(owner.id(), place);
    ASSERT_TRUE(board);
    EXPECT_FALSE(board->has_left_owner());
    owner.go_on();
    EXPECT_TRUE(wait_until([&] { return board->has_left_owner(); }));
    owner.kill();
    EXPECT_FALSE(board->has_left_owner()) << "the mappings of an ended process tell nothing";
}

// Counts each piece where both processes can see it.
TEST_F(pass_boards, every_piece_is_done_once_by_two_processes)
{
    struct tally {
        std::atomic<bool> is_over;
        std::array<std::atomic<unsigned>, max_pass_pieces> times;
        std::atomic<unsigned> by_owner;
    };
    auto& done = shared<tally>();
    forked_process owner([&](forked_process& self) {
        self.ready();
        while (!done.is_over.load()) {
            if (auto found = look(board)) {
                while (const auto next = found->take()) {
                    ++done.times[*next];
                    ++done.by_owner;
                    found->end(true);
                }
            }
        }
    });
    test::random from(run_seed());
    const auto give_up = std::chrono::steady_clock::now() + 20s; // if the owner is not even started
    for (int round = 0; round < 20000 || (done.by_owner == 0 && std::chrono::steady_clock::now() < give_up); ++round) {
        const auto num = static_cast<std::uint32_t>(1 + from.below(round % 100 == 0 ? max_pass_pieces : 8));
        posted_pass pass(board, request_of(num));
        while (const auto next = pass.take()) {
            ++done.times[*next];
        }
        ASSERT_EQ(finish(pass), pieces{});
        for (std::uint32_t i = 0; i < num; ++i) {
            ASSERT_EQ(done.times[i].exchange(0), 1u) << "piece " << i << " of " << num << ", seed " << run_seed();
        }
    }
    done.is_over = true;
    EXPECT_EQ(owner.join(), 0);
    EXPECT_GT(done.by_owner.load(), 0u);
}

TEST_F(pass_boards, an_owner_that_is_killed_with_a_piece_leaves_it_to_the_requester)
{
    const auto request = request_of(3);
    posted_pass pass(board, request);
    forked_process owner([&](forked_process& self) {
        found_on(board, request)->take();
        self.ready();
        self.wait();
    });
    EXPECT_EQ(take_all(pass), (pieces{0, 1}));
    owner.kill();
    EXPECT_EQ(finish(pass, true), pieces{2});
}

// The owner may need the core of a requester with a real-time priority, which gives it to no other thread by yielding.
TEST_F(pass_boards, a_requester_that_waits_long_leaves_its_core)
{
    std::atomic<bool> is_taken{false};
    std::atomic<pid_t> waiting{0};
    std::thread requester([&] {
        posted_pass pass(board, request_of(4));
        is_taken.wait(false);
        take_all(pass);
        waiting = gettid();
        EXPECT_EQ(finish(pass), pieces{});
    });
    std::optional<found_pass> found;
    EXPECT_TRUE(wait_until([&] { return (found = look(board)).has_value(); }));
    found->take();
    is_taken = true;
    is_taken.notify_one();
    EXPECT_TRUE(wait_until([&] { return waiting != 0 && is_asleep(waiting); }));
    found->end(true);
    requester.join();
}

void fill_with_anything(pass_slot& slot, test::random& from)
{
    const auto word = [&]() -> std::uint64_t {
        switch (from.below(4)) {
        case 0:
            return from.below(8);
        case 1:
            return std::uint64_t{1} << 32 | from.below(1 << 20);
        default:
            return from.next();
        }
    };
    slot.left  = word();
    slot.ended = word();
    for (auto& each : slot.request) {
        each = word();
    }
}

TEST_F(pass_boards, an_owner_takes_only_pieces_of_sound_requests)
{
    test::random from(run_seed());
    unsigned num_found = 0;
    for (int round = 0; round < 200000; ++round) {
        fill_with_anything(board.slots[0], from);
        auto found = found_pass::look(board.slots[0]);
        if (!found) {
            continue;
        }
        ++num_found;
        const auto request = found->request();
        std::uint32_t last = max_pass_pieces;
        while (const auto next = found->take()) {
            ASSERT_LT(*next, last) << "seed " << run_seed();
            last = *next;
            ASSERT_GT(found->length_of(*next), 0u);
            ASSERT_LE(found->length_of(*next), request.length - found->offset_of(*next));
            ASSERT_LT(found->offset_of(*next), request.length);
            found->end(true);
            if (from.below(8) == 0) {
                fill_with_anything(board.slots[0], from);
            }
        }
    }
    EXPECT_GT(num_found, 0u);
}

// Also if it asks again after there was none.
TEST_F(pass_boards, an_owner_takes_fewer_and_fewer_pieces_whatever_others_write)
{
    const posted_pass pass(board, request_of(4));
    auto found = look(board);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->take(), 3u);
    std::atomic<std::uint64_t>& left = board.slots[0].left;
    left                             = left | 0x4000; // as if there were more
    EXPECT_EQ(found->take(), std::nullopt);
    EXPECT_EQ(found->take(), std::nullopt);
    left = left & ~std::uint64_t{0x4000};
    EXPECT_EQ(found->take(), 2u);
}

TEST_F(pass_boards, a_requester_copies_each_piece_at_most_once_whatever_others_write)
{
    test::random from(run_seed());
    for (int round = 0; round < 20000; ++round) {
        const auto num = static_cast<std::uint32_t>(1 + from.below(max_pass_pieces));
        posted_pass pass(board, request_of(num));
        std::uint32_t own = 0;
        while (const auto next = pass.take()) {
            ASSERT_EQ(*next, own++) << "seed " << run_seed();
            ASSERT_LT(*next, num);
            if (from.below(16) == 0) {
                fill_with_anything(board.slots[0], from);
            }
        }
        const pieces rest = finish(pass, true);
        for (const std::uint32_t each : rest) {
            ASSERT_EQ(each, own++);
        }
        ASSERT_LE(own, num);
    }
}

} // namespace
