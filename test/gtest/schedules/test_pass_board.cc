// Shared passes (src/uct/layout/peer/pass_board.h), the real code, in orders of its atomic operations that random
// numbers choose: two requesters and an owner with two threads, one of which may be killed at any step. The properties
// are those of test/models/shared_pass.pml.
#include "orders.h"
#include "scheduler.h"

#include "uct/layout/peer/pass_board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>

namespace ucxl
{

// Which process a fiber is, instead of that of the system.
pid_t own_pid()
{
    return test::scheduler::current()->running_process();
}

} // namespace ucxl

namespace ucxl::test
{
namespace
{

constexpr pid_t owner = 100, requester = 200, somebody_else = 300; // the second requester is the next one
constexpr unsigned num_requesters = 2, num_turns = 3, num_passes = num_requesters * num_turns;
constexpr std::uint32_t most_pieces = 5;

struct pass_state {
    pass_request request{};
    pid_t by           = 0;
    bool has_returned  = false;
    std::uint32_t last = 0; // pieces
    std::array<bool, most_pieces> is_taken{}, is_moved{};
    std::array<bool, most_pieces> is_with_owner{}; // between taking and ending it
};

// One order of steps. What is wrong is a text.
class one_order : public checked_order
{
public:
    explicit one_order(std::uint64_t seed) : _random(seed), _all(seed + 1, scheduler::runs::fibers)
    {
        for (unsigned each = 0; each < num_requesters; ++each) {
            _all.add(requester + static_cast<pid_t>(each), [this, each] { request(each); });
        }
        for (int thread = 0; thread < 2; ++thread) {
            _all.add(owner, [this] { take_part(); });
        }
        // Few slots, so that one of a requester that was killed is used again.
        _num_slots = 1 + static_cast<unsigned>(_random.below(num_requesters));
        for (std::size_t other = _num_slots; other < _board.slots.size(); ++other) {
            _board.slots[other].requester = somebody_else;
        }
        if (_random.one_in(2)) {
            _all.kill_somewhere(_random.one_in(2) ? owner : requester);
        }
    }

    const char* run()
    {
        note(_all.run());
        return fault();
    }
    bool was_shared() const { return _num_shared > 0; }
    unsigned num_taken_over() const { return _num_taken_over; }

private:
    // A process that copies passes of its own, one after the other.
    void request(unsigned number)
    {
        for (unsigned turn = 0; turn < num_turns; ++turn) {
            const unsigned id = number * num_turns + turn;
            pass_state& state = _passes[id];
            state.last        = 1 + static_cast<std::uint32_t>(_random.below(most_pieces));
            state.by          = _all.running_process();
            // All fields differ from those of other passes, so that a mixture of two is seen.
            state.request = {.key              = {},
                             .address          = id,
                             .owner_address    = 1000 + id,
                             .owner_generation = 2000 + id,
                             .length           = state.last * (10 + id),
                             .piece            = 10 + id,
                             .direction        = id % 2 == 0 ? pass_direction::to_owner : pass_direction::from_owner};

            const pass_slot* const left_behind = slot_of_dead();
            posted_pass pass(_board, state.request);
            _num_taken_over += left_behind != nullptr && left_behind->requester == state.by ? 1 : 0;
            while (const auto piece = pass.take()) {
                require(*piece < state.last && !state.is_taken[*piece], "a piece is taken twice");
                state.is_taken[*piece] = true;
                _all.step();
                state.is_moved[*piece] = true;
            }
            _num_shared += pass.was_shared() ? 1 : 0;
            pass.finish([this] { return _all.is_dead(owner); },
                        [&](std::uint32_t piece) {
                            require(!state.is_with_owner[piece] || _all.is_dead(owner), "two copy at the same time");
                            state.is_moved[piece] = true;
                        });
            for (std::uint32_t piece = 0; piece < state.last; ++piece) {
                require(state.is_moved[piece], "a piece is lost");
                require(!state.is_with_owner[piece] || _all.is_dead(owner), "it returns before the owner has ended");
            }
            state.has_returned = true;
        }
        ++_num_finished;
    }

    // Of the requester that was killed, if it had one.
    const pass_slot* slot_of_dead() const
    {
        const auto slots = std::span(_board.slots).first(_num_slots);
        const auto found = std::ranges::find_if(slots, [this](const pass_slot& each) {
            const pid_t holder = each.requester;
            return holder != 0 && _all.is_dead(holder);
        });
        return found == slots.end() ? nullptr : &*found;
    }

    bool are_requesters_over() const
    {
        unsigned over = _num_finished;
        for (unsigned each = 0; each < num_requesters; ++each) {
            over += _all.is_dead(requester + static_cast<pid_t>(each)) ? 1 : 0;
        }
        return over >= num_requesters;
    }

    void take_part()
    {
        while (!are_requesters_over()) {
            for (pass_slot& slot : std::span(_board.slots).first(_num_slots)) {
                if (auto found = found_pass::look(slot)) {
                    work(*found);
                }
            }
            _all.step();
        }
    }

    void work(found_pass& found)
    {
        const std::uint64_t id = found.request().address;
        if (id >= num_passes || std::memcmp(&found.request(), &_passes[id].request, sizeof(pass_request)) != 0) {
            // It may be a mixture while the slot changes hands, but then no piece can be taken.
            require(!found.take().has_value(), "a piece of a request that nobody made");
            return;
        }
        pass_state& state = _passes[id];
        for (unsigned moved = 0; moved < 2; ++moved) { // and then it looks elsewhere
            const auto piece = found.take();
            if (!piece) {
                return;
            }
            require(!state.has_returned, "a piece of a pass that is over");
            require(*piece < state.last && !state.is_taken[*piece], "a piece is taken twice");
            state.is_taken[*piece] = state.is_with_owner[*piece] = true;
            _all.step();
            require(!state.has_returned, "its requester has returned");
            const bool is_done          = !_random.one_in(10);
            state.is_moved[*piece]      = is_done;
            state.is_with_owner[*piece] = false;
            found.end(is_done);
        }
    }

    random _random;
    scheduler _all;
    pass_board _board{};
    std::array<pass_state, num_passes> _passes{};
    unsigned _num_slots = 0;
    std::atomic<unsigned> _num_finished{0}, _num_shared{0}, _num_taken_over{0};
};

TEST(schedules, of_shared_passes_lose_no_piece_and_move_none_twice)
{
    std::uint64_t num_orders = 0, num_taken_over = 0;
    try_orders<one_order>(20'000, 0.25, "the owner takes part seldom", [&](const one_order& order) {
        ++num_orders;
        num_taken_over += order.num_taken_over();
        return order.was_shared();
    });
    EXPECT_GE(num_taken_over, num_orders / 100) << "slots of requesters that were killed are used again seldom";
}

} // namespace
} // namespace ucxl::test
