// Windows against the life of UCP contexts: before the first one, after others were destroyed, without lay_copy.
#include "common/log_guard.h"
#include "common/ucp_pair.h"
#include "patterned_window.h"
#include "uct/layout/init.h"
#include "uct/layout/md_observer.h"

#include <algorithm>
#include <span>

#include <ucs/memory/memtype_cache.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

class contexts : public ucx_test
{
protected:
    void SetUp() override { uct_layout_init(); }
};

bool is_rdma(const void* address, std::size_t length)
{
    ucs_memory_info_t info;
    return ucs_memtype_cache_lookup(address, length, &info) == UCS_OK && info.type == UCS_MEMORY_TYPE_RDMA;
}

bool moves(ucp_pair& pair, patterned_window& from, patterned_window& to)
{
    return pair.send_tag(from.address(), to.address(), from.length()) == UCS_OK && to.packed() == from.packed();
}

const ucp_options posix{.config = {{"TLS", "posix,cma,lay_copy"}}};

ucp_mem_h map(ucp_context_h context, const patterned_window& what)
{
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = what.address();
    params.length      = what.length();
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memh     = nullptr;
    EXPECT_EQ(UCS_OK, ucp_mem_map(context, &params, &memh));
    return memh;
}

// In a program of its own, where no context was made before.
TEST(contexts_death_test, windows_made_before_the_first_context)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            uct_layout_init();
            patterned_window from({64, 128}, 10000, 1);
            patterned_window to({24, 40}, 10000, 2);
            ucp_pair pair(posix);
            _exit(moves(pair, from, to) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(contexts_death_test, windows_made_after_host_only_traffic)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            uct_layout_init();
            ucp_pair pair(posix);
            const auto sent = pattern(10000, 1);
            std::vector<std::byte> received(10000);
            const bool host_works  = pair.send_tag(sent.data(), received.data(), 10000) == UCS_OK && received == sent;
            const bool none_before = window_registry::instance().arena_length() == 0;
            patterned_window from({64, 128}, 10000, 1);
            patterned_window to({24, 40}, 10000, 2);
            _exit(host_works && none_before && moves(pair, from, to) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(contexts, destroyed_windows_leave_later_ones_rdma_memory)
{
    ucp_pair pair(posix);                             // with a registration cache, so that UCM reports every unmapping
    for (unsigned round = 0; round < 1100; ++round) { // more than the chunks of a slot: addresses are used again
        patterned_window one({64, 128}, 1000, 1);
        const ucp_mem_h memh = map(pair.context(0), one);
        EXPECT_TRUE(is_rdma(one.address(), 1000));
        ASSERT_EQ(UCS_OK, ucp_mem_unmap(pair.context(0), memh));
    }
    const window_registry& registry = window_registry::instance();
    EXPECT_TRUE(is_rdma(registry.arena_base(), registry.arena_length()));
    patterned_window from({64, 128}, 10000, 1);
    patterned_window to({24, 40}, 10000, 2);
    EXPECT_TRUE(moves(pair, from, to));
}

TEST_F(contexts, several_follow_each_other)
{
    patterned_window from({64, 128}, 10000, 1);
    patterned_window to({24, 40}, 10000, 2);
    for (unsigned i = 0; i < 3; ++i) {
        ucp_pair pair(posix);
        EXPECT_TRUE(moves(pair, from, to));
    }
}

TEST_F(contexts, one_without_lay_copy_registers_no_window)
{
    patterned_window one({64, 128}, 1000, 1);
    ucp_pair without({.config = {{"TLS", "posix"}}});
    const auto before = md_observer::registrations();
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(without.context(0), map(without.context(0), one)));
    EXPECT_EQ(md_observer::registrations(), before);
    ucp_pair with(posix);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(with.context(0), map(with.context(0), one)));
    EXPECT_GT(md_observer::registrations(), before);
}

TEST_F(contexts, send_from_a_window_that_is_gone_sends_zeros)
{
    logs().allow("not inside a live window"); // said a limited number of times by this program
    ucp_pair pair(posix);
    auto gone              = std::make_unique<patterned_window>(window_shape{64, 128}, 1000, 1);
    const std::byte* stale = gone->address();
    gone.reset();
    std::vector<std::byte> received(1000, std::byte{1});
    EXPECT_EQ(UCS_OK, pair.send_tag(stale, received.data(), 1000));
    EXPECT_TRUE(received == std::vector<std::byte>(1000));
}

TEST_F(contexts, put_into_a_window_that_is_gone_changes_nothing)
{
    logs().allow("not inside a live window"); // said a limited number of times by this program
    ucp_pair pair(posix);
    auto gone        = std::make_unique<patterned_window>(window_shape{64, 128}, 1000, 1);
    std::byte* stale = gone->address();
    gone.reset();
    const auto sent = pattern(1000, 1);
    EXPECT_EQ(UCS_OK, pair.put(sent.data(), stale, 999, UCS_MEMORY_TYPE_RDMA));
}

} // namespace
