#include "nixl/shown_windows.h"
#include "support/must.h"
#include "support/ucp.h"

#include <gtest/gtest.h>

#include <vector>

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

TEST_F(nixl_shown_windows, are_limited_for_one_agent)
{
    for (std::uint64_t number = 0; number < shown_windows::max_windows; ++number) {
        ASSERT_EQ(show(1, number, process_identity::own()), UCS_OK);
    }
    EXPECT_EQ(show(1, shown_windows::max_windows, process_identity::own()), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(show(2, 1, process_identity::own()), UCS_OK);
}
