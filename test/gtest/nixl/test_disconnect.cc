// Agents that are disconnected at one end only: the other one does not know yet, and goes on.
#include "nixl/worker.h"
#include "support/must.h"
#include "support/wait_until.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

constexpr std::size_t length = 4096;

std::size_t num_watched_processes()
{
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<std::size_t>(std::ranges::count_if(files, [](const auto& each) {
        std::error_code is_gone;
        return std::filesystem::read_symlink(each, is_gone).string().contains("pidfd");
    }));
}

class nixl_disconnect : public testing::Test
{
protected:
    nixl_disconnect()
        : here(worker::create("here")), there(worker::create("there")),
          own(here->add_region(memory.data(), memory.size(), sharing::never)),
          others(there->add_region(memory_there.data(), memory_there.size(), sharing::never))
    {
        connect();
    }

    // Nobody has heard of the other one when it connects, unless some rounds of progress are made between.
    void connect(int rounds = 0)
    {
        EXPECT_EQ(here->connect("there", there->connection()), UCS_OK);
        progress(rounds);
        EXPECT_EQ(there->connect("here", here->connection()), UCS_OK);
        exchange_notices();
    }

    void progress(int rounds)
    {
        for (int i = 0; i < rounds; ++i) {
            here->progress();
            there->progress();
        }
    }

    // Both know how to answer each other then.
    void exchange_notices()
    {
        EXPECT_EQ(here->send_notice("there", "hello"), UCS_OK);
        EXPECT_EQ(there->send_notice("here", "hello"), UCS_OK);
        EXPECT_TRUE(ucxl::test::wait_until([&] {
            there->progress();
            return !here->take_notices().empty();
        }));
        EXPECT_TRUE(ucxl::test::wait_until([&] {
            here->progress();
            return !there->take_notices().empty();
        }));
    }

    ucs_status_t end_of(transfer& of)
    {
        EXPECT_TRUE(ucxl::test::wait_until([&] {
            progress(100);
            return there->check(of) != UCS_INPROGRESS;
        }));
        return there->check(of);
    }

    // A window that nobody has asked for before, for each first block.
    transfer_ptr prepared_there(std::uint64_t first = 0)
    {
        block_list from, to;
        for (std::uint64_t at = 8 * first; at < length; at += 256) {
            from.add(others->info().id, at, 64);
            to.add(own->info().id, at, 64);
        }
        return must(there->prepare(direction::write, from, "here", to));
    }

    std::vector<std::byte> memory{length}, memory_there{length};
    std::unique_ptr<worker> here, there;
    std::shared_ptr<region> own, others;
};

} // namespace

TEST_F(nixl_disconnect, late_messages_of_the_other_agent_do_no_harm)
{
    const auto before = prepared_there();
    EXPECT_EQ(here->disconnect("there"), UCS_OK);
    progress(100);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(there->send_notice("here", "late"), UCS_OK);
        progress(100);
    }
    there->post(*before, "arrived");
    progress(1000);
    for (std::uint64_t first = 1; first < 8; ++first) {
        const auto after = prepared_there(first); // asks for a window, and is answered
        there->post(*after, "arrived");
        progress(100);
    }
    here->take_notices();
}

TEST_F(nixl_disconnect, its_windows_end_with_a_connection)
{
    const auto window_of_all_agents = [&](std::uint64_t first) {
        const auto moved = prepared_there(first);
        there->post(*moved, std::nullopt);
        return end_of(*moved);
    };
    constexpr std::uint64_t num_windows = 16; // of each connection
    for (std::size_t made = 0; made <= shown_windows::max_windows; made += num_windows) {
        for (std::uint64_t first = 0; first < num_windows; ++first) {
            ASSERT_EQ(window_of_all_agents(first), UCS_OK) << made;
        }
        ASSERT_EQ(there->disconnect("here"), UCS_OK);
        ASSERT_EQ(there->connect("here", here->connection()), UCS_OK);
        progress(1);
    }
}

TEST_F(nixl_disconnect, all_its_windows_end_with_an_agent_that_does_not_wait_for_their_owner)
{
    {
        std::vector<transfer_ptr> prepared;
        for (std::uint64_t first = 0; first < length / 8; ++first) {
            if (8 * first % 256 <= 256 - 64) { // else the last block is not inside of the memory
                prepared.push_back(prepared_there(first));
                progress(20);
            }
        }
        ASSERT_TRUE(ucxl::test::wait_until([&] {
            progress(20);
            return here->num_shown() == prepared.size();
        }));
    }
    there.reset();
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        here->progress();
        return here->num_shown() == 0;
    })) << here->num_shown();
}

TEST_F(nixl_disconnect, who_was_disconnected_can_be_connected_again)
{
    EXPECT_EQ(here->disconnect("there"), UCS_OK);
    EXPECT_EQ(there->send_notice("here", "late"), UCS_OK);
    progress(100);
    here->take_notices();
    EXPECT_EQ(here->connect("there", there->connection()), UCS_OK);
    exchange_notices();
}

TEST_F(nixl_disconnect, who_has_heard_of_the_other_agent_can_connect_to_it)
{
    others.reset();
    own.reset();
    there = worker::create("there");
    here  = worker::create("here");
    connect(1000);
    EXPECT_EQ(there->disconnect("here"), UCS_OK);
    EXPECT_EQ(there->connect("here", here->connection()), UCS_OK);
    exchange_notices();
}

// Each takes a descriptor, and agents come and go.
TEST_F(nixl_disconnect, who_was_disconnected_is_watched_only_as_long_as_a_transfer_needs_it)
{
    EXPECT_EQ(num_watched_processes(), 2u);
    auto kept = prepared_there();
    EXPECT_EQ(here->disconnect("there"), UCS_OK);
    EXPECT_EQ(there->disconnect("here"), UCS_OK);
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        progress(1);
        return num_watched_processes() == 1;
    }));
    kept.reset();
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        progress(1);
        return num_watched_processes() == 0;
    }));
    connect();
    EXPECT_EQ(num_watched_processes(), 2u);
}

TEST_F(nixl_disconnect, an_agent_that_ended_does_no_harm_to_the_other_one)
{
    here.reset();
    there->send_notice("here", "late");
    for (int i = 0; i < 1000; ++i) {
        there->progress();
    }
}
