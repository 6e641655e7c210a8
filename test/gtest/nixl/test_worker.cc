#include "nixl/worker.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/random.h"
#include "support/wait_until.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

using bytes = std::vector<unsigned char>;

constexpr std::size_t memory_length = 4U << 20;
constexpr std::size_t block_length  = 4096;
constexpr std::size_t num_blocks    = memory_length / block_length;

// What an agent in another process and its test tell each other.
struct blackboard {
    enum command { none, copy, end_memory, end };

    std::atomic<int> asked{none};
    std::atomic<std::size_t> connection_length{0};
    std::atomic<std::size_t> num_notices{0};
    std::array<char, 4096> connection{};
    std::array<char, 64> notice{};
    region_info memory;
    std::array<unsigned char, memory_length> content{}; // after copy
};

unsigned char* new_memory()
{
    return static_cast<unsigned char*>(
        mmap(nullptr, memory_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void fill(unsigned char* memory, unsigned seed)
{
    std::mt19937_64 random(ucxl::test::run_seed() + seed);
    for (std::size_t i = 0; i < memory_length; i += 8) {
        const std::uint64_t value = random();
        std::memcpy(memory + i, &value, 8);
    }
}

// Another agent, until it is asked to end.
void run_agent(blackboard& board, sharing how)
{
    const auto self = worker::create("other");
    auto* memory    = new_memory();
    fill(memory, 2);
    const auto registered = self->add_region(memory, memory_length, how);
    ASSERT_EQ(registered->is_shared(), how == sharing::move) << registered->reason();
    board.memory = registered->info();
    std::memcpy(board.connection.data(), self->connection().data(), self->connection().size());
    board.connection_length = self->connection().size();
    while (board.asked != blackboard::end) {
        self->progress();
        for (const auto& [agent, text] : self->take_notices()) {
            std::snprintf(board.notice.data(), board.notice.size(), "%s: %s", agent.c_str(), text.c_str());
            std::memcpy(board.content.data(), memory, memory_length); // data first, then notices
            ++board.num_notices;
        }
        switch (board.asked) {
        case blackboard::copy:
            std::memcpy(board.content.data(), memory, memory_length);
            board.asked = blackboard::none;
            break;
        case blackboard::end_memory:
            self->end_region(registered);
            board.asked = blackboard::none;
            break;
        default:
            break;
        }
    }
}

// Whose memory is shared, whether the kernel copies other memory, and whether the agents take each other for ones on
// different hosts.
struct place {
    const char* name;
    sharing how;
    bool has_kernel;
    bool is_far;

    bool is_one_sided() const { return !is_far && (has_kernel || how == sharing::move); }
};

class nixl_worker : public testing::TestWithParam<place>
{
protected:
    nixl_worker() : board(ucxl::test::shared<blackboard>()), memory(new_memory())
    {
        // UCX's thread for its file system may hold a lock at the fork.
        setenv("UCX_VFS_ENABLE", "n", 1);
        if (!GetParam().has_kernel) {
            setenv("UCX_LAY_CMA_MIN_BLOCK", "inf", 1);
            setenv("UCX_TLS", "^cma", 1); // so that UCX has TCP for long messages of neighbors
        }
        fill(memory, 1);
        other.emplace([this](auto& process) {
            process.ready();
            run_agent(board, GetParam().how);
        });
        other->go_on();
        EXPECT_TRUE(ucxl::test::wait_until([this] { return board.connection_length != 0; }));
        self = worker::create("self");
        own  = self->add_region(memory, memory_length, sharing::never);
        EXPECT_EQ(self->connect("other", connection()), UCS_OK);
    }

    std::string connection() const
    {
        auto read = decode_connection({board.connection.data(), board.connection_length});
        read->process.host += GetParam().is_far ? 1 : 0;
        return encode(*read);
    }

    ~nixl_worker() override
    {
        board.asked = blackboard::end;
        if (other) {
            EXPECT_EQ(other->join(), 0);
        }
        self.reset();
        munmap(memory, memory_length);
        unsetenv("UCX_LAY_CMA_MIN_BLOCK");
        unsetenv("UCX_TLS");
    }

    void ask(blackboard::command what)
    {
        board.asked = what;
        EXPECT_TRUE(ucxl::test::wait_until([this] {
            self->progress();
            return board.asked == blackboard::none;
        }));
    }

    void progress(int rounds)
    {
        for (int i = 0; i < rounds; ++i) {
            self->progress();
        }
    }

    void stop_other()
    {
        ASSERT_EQ(kill(other->id(), SIGSTOP), 0);
        ASSERT_TRUE(ucxl::test::wait_until([this] {
            const auto status = ucxl::status_of_process(other->id());
            return status && status->state == 'T';
        }));
    }
    void continue_other() { ASSERT_EQ(kill(other->id(), SIGCONT), 0); }

    ucs_status_t end_of(transfer& of)
    {
        EXPECT_TRUE(ucxl::test::wait_until([&] { return self->check(of) != UCS_INPROGRESS; }));
        return self->check(of);
    }

    // Each block of one side and its place at the other one.
    void draw_blocks(std::size_t count)
    {
        std::mt19937_64 random(ucxl::test::run_seed());
        here = there = std::vector<std::size_t>(num_blocks);
        std::iota(here.begin(), here.end(), 0);
        std::iota(there.begin(), there.end(), 0);
        std::ranges::shuffle(here, random);
        std::ranges::shuffle(there, random);
        here.resize(count);
        there.resize(count);
    }

    static block_list list_of(std::uint64_t region, const std::vector<std::size_t>& blocks)
    {
        block_list made;
        for (const auto each : blocks) {
            made.add(region, each * block_length, block_length);
        }
        return made;
    }

    auto prepare(direction way)
    {
        return self->prepare(way, list_of(own->info().id, here), "other", list_of(board.memory.id, there));
    }

    // A write that has moved all blocks before.
    transfer_ptr posted_beside_stopped_agent()
    {
        draw_blocks(num_blocks);
        return posted_beside_stopped_agent(must(prepare(direction::write)));
    }

    transfer_ptr posted_beside_stopped_agent(transfer_ptr moved)
    {
        self->post(*moved, std::nullopt);
        EXPECT_EQ(end_of(*moved), UCS_OK);
        stop_other();
        self->post(*moved, std::nullopt);
        progress(20);
        return moved;
    }

    // The same from one block here to short ones there.
    transfer_ptr contiguous_beside_stopped_agent()
    {
        return posted_beside_stopped_agent(must(prepare_contiguous(*self, *own)));
    }

    // Half of the first `count` * 128 bytes of the other agent, from bytes in one piece.
    ucx_layout::result<transfer_ptr> prepare_contiguous(worker& agent, const region& from_region)
    {
        constexpr std::size_t short_block = 64, count = 8192;
        block_list from, to;
        from.add(from_region.info().id, 0, count * short_block);
        for (std::size_t i = 0; i < count; ++i) {
            to.add(board.memory.id, i * 2 * short_block, short_block);
        }
        return agent.prepare(direction::write, std::move(from), "other", std::move(to));
    }

    // What `to` has to be after a transfer from `from`.
    static bytes expected(const unsigned char* to, const unsigned char* from, const std::vector<std::size_t>& targets,
                          const std::vector<std::size_t>& sources)
    {
        bytes made(to, to + memory_length);
        for (std::size_t i = 0; i < targets.size(); ++i) {
            std::memcpy(&made[targets[i] * block_length], from + sources[i] * block_length, block_length);
        }
        return made;
    }

    blackboard& board;
    unsigned char* memory;
    std::optional<ucxl::test::forked_process> other;
    std::unique_ptr<worker> self;
    std::shared_ptr<region> own;
    std::vector<std::size_t> here, there;
};

} // namespace

TEST_P(nixl_worker, write_changes_the_blocks_and_nothing_else_and_then_notifies)
{
    ask(blackboard::copy);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, num_blocks / 2}) {
        draw_blocks(count);
        const auto wanted = expected(board.content.data(), memory, there, here);
        auto moved        = must(prepare(direction::write));
        const auto before = board.num_notices.load();
        self->post(*moved, "arrived " + std::to_string(count));
        ASSERT_EQ(end_of(*moved), UCS_OK);
        ASSERT_TRUE(ucxl::test::wait_until([&] { return board.num_notices == before + 1; }));
        EXPECT_EQ(std::string(board.notice.data()), "self: arrived " + std::to_string(count));
        EXPECT_TRUE(std::ranges::equal(board.content, wanted)) << count;
        moved.reset();
    }
}

TEST_P(nixl_worker, read_brings_the_blocks_and_nothing_else)
{
    ask(blackboard::copy);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, num_blocks / 2}) {
        draw_blocks(count);
        const auto wanted = expected(memory, board.content.data(), here, there);
        auto moved        = must(prepare(direction::read));
        self->post(*moved, std::nullopt);
        ASSERT_EQ(end_of(*moved), UCS_OK);
        EXPECT_TRUE(std::ranges::equal(std::span(memory, memory_length), wanted)) << count;
        moved.reset();
    }
}

TEST_P(nixl_worker, a_transfer_is_posted_again_with_what_is_in_memory_then)
{
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::write));
    for (unsigned round = 0; round < 5; ++round) {
        fill(memory, 100 + round);
        ask(blackboard::copy);
        const auto wanted = expected(board.content.data(), memory, there, here);
        self->post(*moved, std::nullopt);
        ASSERT_EQ(end_of(*moved), UCS_OK);
        ask(blackboard::copy);
        ASSERT_TRUE(std::ranges::equal(board.content, wanted)) << round;
    }
}

TEST_P(nixl_worker, a_list_that_was_moved_before_needs_nothing_of_its_owner_where_it_is_reached_without_messages)
{
    if (!GetParam().is_one_sided()) {
        GTEST_SKIP() << "the owner takes part";
    }
    for (const std::size_t count : {std::size_t{2}, num_blocks / 2}) {
        draw_blocks(count);
        const auto moved = must(prepare(direction::write));
        self->post(*moved, std::nullopt);
        ASSERT_EQ(end_of(*moved), UCS_OK);
        fill(memory, 3);
        ask(blackboard::copy);
        const auto wanted = expected(board.content.data(), memory, there, here);
        stop_other();
        self->post(*moved, std::nullopt);
        EXPECT_EQ(end_of(*moved), UCS_OK) << count;
        continue_other();
        ask(blackboard::copy);
        EXPECT_TRUE(std::ranges::equal(board.content, wanted)) << count;
    }
}

TEST_P(nixl_worker, a_transfer_that_runs_is_not_posted_again)
{
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::write));
    ASSERT_EQ(self->post(*moved, std::nullopt), UCS_INPROGRESS);
    EXPECT_EQ(self->post(*moved, std::nullopt), UCS_ERR_BUSY);
    EXPECT_EQ(end_of(*moved), UCS_OK);
}

TEST_P(nixl_worker, many_transfers_run_at_once_and_their_notices_come_once_each)
{
    std::vector<transfer_ptr> all;
    draw_blocks(64);
    for (int i = 0; i < 20; ++i) {
        all.push_back(must(prepare(i % 2 == 0 ? direction::write : direction::read)));
        self->post(*all.back(), "one");
    }
    for (const auto& each : all) {
        EXPECT_EQ(end_of(*each), UCS_OK);
    }
    EXPECT_TRUE(ucxl::test::wait_until([&] { return board.num_notices == all.size(); }));
}

TEST_P(nixl_worker, a_transfer_that_is_released_while_it_runs_ends_and_the_next_one_is_right)
{
    draw_blocks(num_blocks / 2);
    for (int i = 0; i < 10; ++i) {
        auto moved = must(prepare(i % 2 == 0 ? direction::write : direction::read));
        self->post(*moved, std::nullopt);
        for (int round = 0; round < i; ++round) {
            self->check(*moved);
        }
        moved.reset();
    }
    fill(memory, 7);
    ask(blackboard::copy);
    const auto wanted = expected(board.content.data(), memory, there, here);
    const auto moved  = must(prepare(direction::write));
    self->post(*moved, std::nullopt);
    ASSERT_EQ(end_of(*moved), UCS_OK);
    ask(blackboard::copy);
    EXPECT_TRUE(std::ranges::equal(board.content, wanted));
}

TEST_P(nixl_worker, a_transfer_may_outlive_its_worker)
{
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::write));
    self->post(*moved, std::nullopt);
    ASSERT_EQ(end_of(*moved), UCS_OK);
    self.reset();
}

TEST_P(nixl_worker, lists_of_different_lengths_are_refused)
{
    draw_blocks(4);
    there.pop_back();
    EXPECT_EQ(prepare(direction::write).error(), UCS_ERR_INVALID_PARAM);
}

TEST_P(nixl_worker, lists_without_bytes_end_at_once_and_notify)
{
    const auto moved = must(prepare(direction::write));
    self->post(*moved, "nothing");
    EXPECT_EQ(end_of(*moved), UCS_OK);
    EXPECT_TRUE(ucxl::test::wait_until([&] { return board.num_notices == 1; }));
}

TEST_P(nixl_worker, bytes_outside_of_registered_memory_are_refused_by_their_owner)
{
    draw_blocks(4);
    there.back()     = num_blocks;
    const auto moved = must(prepare(direction::write));
    self->post(*moved, std::nullopt);
    EXPECT_EQ(end_of(*moved), UCS_ERR_OUT_OF_RANGE);
}

// The owner needs addresses for all of them.
TEST_P(nixl_worker, bytes_that_are_named_very_often_are_refused_by_their_owner)
{
    constexpr std::size_t repeats = (std::size_t{2} << 30) / memory_length;
    block_list from, into;
    for (std::size_t i = 0; i < repeats; ++i) {
        from.add(own->info().id, 0, memory_length);
        into.add(board.memory.id, 0, memory_length);
    }
    const auto moved = must(self->prepare(direction::write, std::move(from), "other", std::move(into)));
    self->post(*moved, std::nullopt);
    EXPECT_EQ(end_of(*moved), UCS_ERR_EXCEEDS_LIMIT);
    // The next one needs few.
    draw_blocks(64);
    const auto next = must(prepare(direction::write));
    self->post(*next, std::nullopt);
    EXPECT_EQ(end_of(*next), UCS_OK);
}

TEST_P(nixl_worker, memory_that_was_deregistered_is_not_found)
{
    draw_blocks(64);
    auto before = must(prepare(direction::write));
    self->post(*before, std::nullopt);
    ASSERT_EQ(end_of(*before), UCS_OK);
    before.reset();
    ask(blackboard::end_memory);
    std::swap(there.front(), there.back()); // a list that the owner has no window of yet
    const auto after = must(prepare(direction::write));
    self->post(*after, std::nullopt);
    EXPECT_EQ(end_of(*after), UCS_ERR_NO_ELEM);
}

TEST_P(nixl_worker, windows_of_memory_that_was_deregistered_fail)
{
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::write));
    self->post(*moved, std::nullopt);
    ASSERT_EQ(end_of(*moved), UCS_OK);
    ask(blackboard::end_memory);
    self->post(*moved, std::nullopt);
    EXPECT_NE(end_of(*moved), UCS_OK);
}

TEST_P(nixl_worker, own_memory_that_was_deregistered_is_not_touched)
{
    draw_blocks(64);
    const auto moved = must(prepare(direction::write));
    self->end_region(own);
    self->post(*moved, std::nullopt);
    EXPECT_EQ(end_of(*moved), UCS_ERR_NO_ELEM);
}

TEST_P(nixl_worker, an_agent_that_was_killed_ends_what_runs_and_what_comes)
{
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::write));
    self->post(*moved, std::nullopt);
    ASSERT_EQ(end_of(*moved), UCS_OK);
    std::swap(there.front(), there.back());
    other->kill();
    other.reset();
    if (const auto after = prepare(direction::write)) {
        self->post(**after, std::nullopt);
        EXPECT_EQ(end_of(**after), UCS_ERR_CONNECTION_RESET);
    }
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        self->progress();
        return self->send_notice("other", "anybody there?") == UCS_ERR_CONNECTION_RESET;
    }));
}

TEST_P(nixl_worker, an_agent_that_is_killed_while_bytes_move_ends_the_transfer)
{
    const auto moved = posted_beside_stopped_agent();
    other->kill();
    other.reset();
    const auto status = end_of(*moved);
    EXPECT_TRUE(status == UCS_ERR_CONNECTION_RESET || (GetParam().is_one_sided() && status == UCS_OK) ||
                (GetParam().is_far && status != UCS_OK))
        << ucs_status_string(status);
    EXPECT_EQ(self->end(*moved), UCS_OK);
}

TEST_P(nixl_worker, an_agent_that_is_killed_before_it_takes_a_notice_ends_the_transfer)
{
    if (!GetParam().is_one_sided()) {
        GTEST_SKIP() << "the bytes wait for the agent, too";
    }
    draw_blocks(num_blocks / 2);
    const auto moved = must(prepare(direction::read));
    self->post(*moved, std::nullopt);
    ASSERT_EQ(end_of(*moved), UCS_OK);
    stop_other();
    // Until UCX has no more room for them.
    constexpr int enough = 10'000;
    for (int posts = 0; moved->at != transfer::stage::notifying; ++posts) {
        ASSERT_LT(posts, enough);
        self->post(*moved, "text");
        ASSERT_TRUE(ucxl::test::wait_until(
            [&] { return self->check(*moved) != UCS_INPROGRESS || moved->at == transfer::stage::notifying; }));
    }
    ASSERT_EQ(self->check(*moved), UCS_INPROGRESS);
    other->kill();
    other.reset();
    EXPECT_EQ(end_of(*moved), UCS_ERR_CONNECTION_RESET);
}

// The memory is the program's only after the end.
TEST_P(nixl_worker, a_transfer_has_no_end_while_an_agent_that_does_not_go_on_may_take_its_bytes)
{
    const auto moved     = posted_beside_stopped_agent();
    const bool is_in_ucx = !GetParam().is_one_sided() && !GetParam().is_far; // the endpoint to another host is closed
    EXPECT_EQ(self->end(*moved), is_in_ucx ? UCS_ERR_BUSY : UCS_OK);
    continue_other();
    if (is_in_ucx) {
        EXPECT_EQ(end_of(*moved), UCS_ERR_CANCELED);
        EXPECT_EQ(self->end(*moved), UCS_OK);
    }
}

TEST_P(nixl_worker, a_transfer_that_is_released_while_an_agent_does_not_go_on_is_kept_until_it_ends)
{
    auto moved           = posted_beside_stopped_agent();
    const bool is_in_ucx = !GetParam().is_one_sided() && !GetParam().is_far;
    moved.reset();
    EXPECT_EQ(self->num_released(), is_in_ucx ? 1u : 0u);
    continue_other();
    EXPECT_TRUE(ucxl::test::wait_until([this] {
        self->progress();
        return self->num_released() == 0;
    }));
}

TEST_P(nixl_worker, contiguous_memory_that_ucx_does_not_map_is_prepared)
{
    const auto unmapped = self->add_region(nullptr, block_length, sharing::never); // which UCX refuses on every machine
    const auto prepared =
        self->prepare(direction::write, list_of(unmapped->info().id, {0}), "other", list_of(board.memory.id, {0}));
    EXPECT_TRUE(prepared);
}

TEST_P(nixl_worker, may_end_while_contiguous_bytes_are_with_an_agent_that_does_not_go_on)
{
    const auto moved = contiguous_beside_stopped_agent();
    self.reset();
    continue_other();
}

TEST_P(nixl_worker, may_end_after_contiguous_bytes_were_with_an_agent_that_was_killed)
{
    auto moved = contiguous_beside_stopped_agent();
    other->kill();
    other.reset();
    end_of(*moved);
    moved.reset();
    self.reset();
}

// Its messages wait in shared memory, while the kernel has closed its connections by TCP.
TEST_P(nixl_worker, goes_on_after_an_agent_was_killed_whose_contiguous_bytes_it_has_not_taken)
{
    own.reset();
    self.reset(); // before the fork: UCX has no threads then
    auto& has_posted = ucxl::test::shared<std::atomic<bool>>();
    ucxl::test::forked_process third([&](auto& process) {
        const auto agent = worker::create("third");
        const auto from  = agent->add_region(memory, memory_length, sharing::never);
        ASSERT_EQ(agent->connect("other", connection()), UCS_OK);
        const auto moved = must(prepare_contiguous(*agent, *from));
        agent->post(*moved, std::nullopt);
        ASSERT_TRUE(ucxl::test::wait_until([&] { return agent->check(*moved) != UCS_INPROGRESS; }));
        ASSERT_EQ(agent->check(*moved), UCS_OK);
        process.ready();
        process.wait(); // until the other agent is stopped
        agent->post(*moved, std::nullopt);
        for (int i = 0; i < 20; ++i) {
            agent->progress();
        }
        has_posted = true;
        process.wait();
    });
    stop_other();
    third.go_on();
    ASSERT_TRUE(ucxl::test::wait_until([&] { return has_posted.load(); }));
    third.kill();
    continue_other();
    board.asked = blackboard::copy;
    EXPECT_TRUE(ucxl::test::wait_until([this] { return board.asked == blackboard::none; }));
}

TEST_P(nixl_worker, bytes_that_come_after_their_transfers_were_released_are_dropped)
{
    draw_blocks(num_blocks);
    auto first = must(prepare(direction::read));
    self->post(*first, std::nullopt);
    ASSERT_EQ(end_of(*first), UCS_OK);
    auto second = must(prepare(direction::read));
    stop_other();
    self->post(*first, std::nullopt);
    self->post(*second, std::nullopt);
    progress(20);
    first.reset();
    second.reset();
    fill(memory, 3);
    const bytes before(memory, memory + memory_length);
    continue_other();
    for (int i = 0; i < 100; ++i) {
        progress(20);
        usleep(1000);
    }
    EXPECT_TRUE(std::ranges::equal(before, bytes(memory, memory + memory_length)));
}

TEST_P(nixl_worker, an_agent_that_was_disconnected_is_not_known)
{
    draw_blocks(4);
    const auto moved = must(prepare(direction::write));
    EXPECT_EQ(self->disconnect("other"), UCS_OK);
    EXPECT_EQ(self->disconnect("other"), UCS_ERR_NO_ELEM);
    EXPECT_EQ(prepare(direction::write).error(), UCS_ERR_NO_ELEM);
    EXPECT_EQ(self->send_notice("other", "text"), UCS_ERR_NO_ELEM);
    self->post(*moved, std::nullopt);
    EXPECT_EQ(end_of(*moved), UCS_ERR_NOT_CONNECTED);
}

// The transfer has the endpoint, so the next connection gets another one.
TEST_P(nixl_worker, moves_after_it_has_connected_again_beside_a_transfer)
{
    draw_blocks(num_blocks / 2);
    const auto kept = must(prepare(direction::write));
    self->post(*kept, std::nullopt);
    ASSERT_EQ(end_of(*kept), UCS_OK);
    ASSERT_EQ(self->disconnect("other"), UCS_OK);
    ASSERT_EQ(self->connect("other", connection()), UCS_OK);
    const auto moved = must(prepare(direction::write));
    self->post(*moved, "arrived");
    EXPECT_EQ(end_of(*moved), UCS_OK);
    EXPECT_TRUE(ucxl::test::wait_until([this] { return board.num_notices == 1; }));
}

TEST_P(nixl_worker, bytes_that_are_no_connection_are_refused)
{
    EXPECT_EQ(self->connect("third", "anything"), UCS_ERR_INVALID_PARAM);
    EXPECT_FALSE(self->is_connected("third"));
    EXPECT_EQ(self->connect("other", connection()), UCS_ERR_ALREADY_EXISTS);
    // It would be asked for the answers of the other one.
    EXPECT_EQ(self->connect("third", connection()), UCS_ERR_ALREADY_EXISTS);
    EXPECT_FALSE(self->is_connected("third"));
}

TEST_P(nixl_worker, moves_within_the_agent_itself)
{
    auto* const second = new_memory();
    fill(second, 9);
    const auto target = self->add_region(second, memory_length, GetParam().how);
    draw_blocks(num_blocks / 2);
    const auto wanted = expected(second, memory, there, here);
    const auto moved =
        must(self->prepare(direction::write, list_of(own->info().id, here), "self", list_of(target->info().id, there)));
    self->post(*moved, "to myself");
    ASSERT_EQ(end_of(*moved), UCS_OK);
    EXPECT_TRUE(std::ranges::equal(std::span(second, memory_length), wanted));
    EXPECT_EQ(self->take_notices(), (worker::notices{{"self", "to myself"}}));
    self->end_region(target);
    munmap(second, memory_length);
}

INSTANTIATE_TEST_SUITE_P(of, nixl_worker,
                         testing::Values(place{"private_memory", sharing::never, true, false},
                                         place{"private_memory_by_messages", sharing::never, false, false},
                                         place{"shared_memory", sharing::move, true, false},
                                         place{"another_host", sharing::move, true, true}),
                         [](const auto& each) { return each.param.name; });
