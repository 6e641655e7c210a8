#include "nixl/shown_windows.h"
#include "support/forked_process.h"
#include "support/must.h"
#include "support/ucp.h"
#include "support/wait_until.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <csignal>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ucxl::nixl;
using ucxl::process_identity;
using ucxl::test::must;

namespace
{

class nixl_shown_windows : public testing::Test
{
protected:
    nixl_shown_windows()
        : layout(must(ucx_layout::layout::create_strided(8, {{.count = 4, .stride = 64}}))), bytes(512, '\0')
    {
        bytes.resize(must(layout.serialize(std::as_writable_bytes(std::span(bytes)))));
        regions.emplace(1, std::make_shared<region>(1, memory.data(), memory.size(), sharing::never));
    }

    ucs_status_t show(std::uint64_t agent, std::uint64_t number, const process_identity& process)
    {
        const auto answer = shown.show({.kind    = message_kind::show,
                                        .sender  = agent,
                                        .window  = number,
                                        .length  = 32,
                                        .process = process,
                                        .regions = {1},
                                        .bytes   = bytes},
                                       regions, context.get());
        return static_cast<ucs_status_t>(answer.status);
    }

    // After so many windows those of agents that have ended are looked for.
    void show_many(std::uint64_t agent, std::size_t count)
    {
        for (std::uint64_t number = 0; number < count; ++number) {
            ASSERT_EQ(show(agent, number, process_identity::own()), UCS_OK);
        }
    }

    static process_identity identity_of(pid_t process)
    {
        auto made       = process_identity::own();
        made.pid        = process;
        made.start_time = ucxl::status_of_process(process)->start_time;
        return made;
    }

    ucxl::test::context context{{.features = UCP_FEATURE_RMA | UCP_FEATURE_AM}};
    ucx_layout::layout layout;
    std::string bytes;
    std::vector<std::byte> memory{256};
    region_table regions;
    shown_windows shown;
};

} // namespace

TEST_F(nixl_shown_windows, of_agents_whose_processes_have_ended_end)
{
    auto ended = process_identity::own();
    --ended.start_time; // another one had the number before
    ASSERT_EQ(show(1, 1, process_identity::own()), UCS_OK);
    for (std::uint64_t agent = 2; agent < 100; ++agent) {
        for (std::uint64_t number = 0; number < 64; ++number) {
            ASSERT_EQ(show(agent, number, ended), UCS_OK);
        }
    }
    EXPECT_LE(shown.size(), shown_windows::min_windows_to_look);
    EXPECT_NE(shown.find(1, 1, 0, 32), nullptr);
}

TEST_F(nixl_shown_windows, of_an_agent_whose_first_thread_has_ended_stay_until_the_others_have)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads, if its parent has several";
#endif
    ucxl::test::forked_process child([](auto& process) {
        std::thread([&] {
            process.ready();
            process.wait();
        }).detach();
        syscall(SYS_exit, 0); // of the first thread alone, without the ends of what it has
    });
    ASSERT_TRUE(ucxl::test::wait_until([&] { return ucxl::status_of_process(child.id())->state == 'Z'; }));
    ASSERT_EQ(show(1, 1, identity_of(child.id())), UCS_OK);
    show_many(2, shown_windows::min_windows_to_look);
    EXPECT_NE(shown.find(1, 1, 0, 32), nullptr);

    ASSERT_EQ(::kill(child.id(), SIGKILL), 0);
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.id()), &ended, WEXITED | WNOWAIT), 0);
    show_many(3, 2 * shown_windows::min_windows_to_look);
    EXPECT_EQ(shown.find(1, 1, 0, 32), nullptr);
}

TEST_F(nixl_shown_windows, of_agents_stay_while_nobody_can_look_at_their_processes)
{
    ucxl::test::forked_process child([](auto& process) {
        process.ready();
        process.wait();
    });
    ASSERT_EQ(show(1, 1, identity_of(child.id())), UCS_OK);
    show_many(2, shown_windows::min_windows_to_look - 1);

    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit no_descriptors{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &no_descriptors), 0);
    show(3, 1, process_identity::own());
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_NE(shown.find(1, 1, 0, 32), nullptr);
    EXPECT_GE(shown.size(), shown_windows::min_windows_to_look);
}

TEST_F(nixl_shown_windows, of_agents_that_nobody_here_knows_stay)
{
    auto far = process_identity::own();
    ++far.host;
    for (std::uint64_t number = 0; number < 2 * shown_windows::min_windows_to_look; ++number) {
        ASSERT_EQ(show(1, number, far), UCS_OK);
    }
    EXPECT_EQ(shown.size(), 2 * shown_windows::min_windows_to_look);
    shown.drop_agent(1);
    EXPECT_EQ(shown.size(), 0u);
}

TEST_F(nixl_shown_windows, of_an_agent_that_leaves_end_but_not_those_that_it_has_asked_for_since)
{
    show_many(1, 4);
    show_many(2, 4);
    shown.drop_up_to(1, 2);
    EXPECT_EQ(shown.size(), 5u);
    EXPECT_EQ(shown.find(1, 0, 0, 32), nullptr);
    EXPECT_EQ(shown.find(1, 2, 0, 32), nullptr);
    EXPECT_NE(shown.find(1, 3, 0, 32), nullptr);
    EXPECT_NE(shown.find(2, 0, 0, 32), nullptr);
}

TEST_F(nixl_shown_windows, are_limited_for_one_agent)
{
    for (std::uint64_t number = 0; number < shown_windows::max_windows; ++number) {
        ASSERT_EQ(show(1, number, process_identity::own()), UCS_OK);
    }
    EXPECT_EQ(show(1, shown_windows::max_windows, process_identity::own()), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(show(2, 1, process_identity::own()), UCS_OK);
}
