// Windows during the life of UCP contexts: before the first one, after others were destroyed, without lay_copy.
#include "abi/memory_types.h"
#include "patterned_window.h"
#include "support/log_guard.h"
#include "support/ucp.h"
#include "support/ucp_pair.h"
#include "support/unmap_events.h"
#include "ucs/window/domain_query.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/init.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

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
    const auto* const first = static_cast<const std::byte*>(address);
    return ucxl::abi::is_known_as(UCS_MEMORY_TYPE_RDMA, first) &&
           ucxl::abi::is_known_as(UCS_MEMORY_TYPE_RDMA, first + length - 1);
}

bool moves(ucp_pair& pair, patterned_window& from, patterned_window& to)
{
    return pair.send_tag(from.address(), to.address(), from.length()) == UCS_OK && to.packed() == from.packed();
}

const ucp_options posix{.config = {{"TLS", "posix,cma,lay_copy"}}};

ucp_mem_h map(ucp_context_h context, const patterned_window& patterned)
{
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = patterned.address();
    params.length      = patterned.length();
    params.memory_type = UCS_MEMORY_TYPE_RDMA;
    ucp_mem_h memh     = nullptr;
    check_ok(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
    return memh;
}

// Runs in a program of its own, so that no context was made before.
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
    const std::byte* const last     = registry.arena_base() + registry.arena_length() - 1;
    EXPECT_TRUE(is_rdma(registry.arena_base(), 1));
    EXPECT_TRUE(ucxl::abi::is_known_as(registry.memory_type_at(last), last));
    patterned_window from({64, 128}, 10000, 1);
    patterned_window to({24, 40}, 10000, 2);
    EXPECT_TRUE(moves(pair, from, to));
}

// Each event would stay in the queues of both contexts' registration caches, for ever if they register nothing.
TEST_F(contexts, windows_that_are_staged_leave_nothing_to_registration_caches)
{
    ucp_pair pair(posix);
    ASSERT_TRUE(window_registry::instance().reserve().has_value());
    const unmap_events events(window_registry::instance().arena_base(), window_registry::instance().arena_length());
    for (int i = 0; i < 2000; ++i) {
        patterned_window from({64, 128}, 1000, 1);
        patterned_window to({24, 40}, 1000, 2);
        ASSERT_TRUE(moves(pair, from, to));
    }
    EXPECT_EQ(events.count(), 0u);
}

TEST_F(contexts, hear_of_the_end_of_windows_that_were_registered)
{
    ucp_pair pair(posix);
    ASSERT_TRUE(window_registry::instance().reserve().has_value());
    const unmap_events events(window_registry::instance().arena_base(), window_registry::instance().arena_length());
    {
        const patterned_window registered({64, 128}, 10000, 1);
        check_ok(ucp_mem_unmap(pair.context(), map(pair.context(), registered)), "ucp_mem_unmap");
        EXPECT_EQ(events.count(), 0u);
    }
    EXPECT_EQ(events.count(), 1u);
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
    const domain_query query;
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(without.context(0), map(without.context(0), one)));
    EXPECT_EQ(query.found.copying, nullptr);
    ucp_pair pair(posix);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(pair.context(0), map(pair.context(0), one)));
    EXPECT_NE(query.found.copying, nullptr);
}

// Debian's UCX checks parameters.
TEST_F(contexts, a_send_longer_than_its_window_is_refused_where_it_has_the_memory_handle)
{
    logs().expect("mismatched memory handle");
    ucp_pair pair(posix);
    patterned_window window({64, 128}, 1000, 1);
    const ucp_mem_h memh      = map(pair.context(0), window);
    ucp_request_param_t param = {};
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_MEMH;
    param.memh                = memh;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, pair.finish(ucp_tag_send_nbx(pair.ep(0), window.address(), 1001, 5, &param)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              pair.finish(ucp_tag_recv_nbx(pair.worker(0), window.address(), 1001, 5, ~0ull, &param)));
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(pair.context(0), memh));
}

struct stale_case {
    const char* name;
    const char* tls;
    std::size_t window_length;
    std::size_t length; // of the message, from the address of the window on
    bool unmapped;
};

std::string name_of(const testing::TestParamInfo<stale_case>& info)
{
    return info.param.name;
}

class stale_windows : public ucx_test, public testing::WithParamInterface<stale_case>
{
protected:
    void SetUp() override
    {
        uct_layout_init();
        const stale_case& stale = GetParam();
        _pair                   = std::make_unique<ucp_pair>(
            ucp_options{.config = {{"TLS", stale.tls}}, .self = std::string_view(stale.tls).starts_with("self")});
        // The endpoints finish their negotiation first.
        std::byte before{1};
        ASSERT_EQ(UCS_OK, _pair->send_tag(&before, &before, 1));
        _window  = std::make_unique<patterned_window>(window_shape{64, 128}, stale.window_length, 1);
        _address = _window->address();
        if (stale.unmapped) {
            _window.reset();
        }
    }

    // Another message on the same endpoint.
    void expect_that_others_go_on()
    {
        patterned_window from({64, 128}, 100000, 3);
        patterned_window to({24, 40}, 100000, 2);
        EXPECT_TRUE(moves(*_pair, from, to));
    }

    ucp_pair& pair() { return *_pair; }
    std::byte* address() const { return _address; }
    static std::size_t length() { return GetParam().length; }

private:
    std::unique_ptr<ucp_pair> _pair;
    std::unique_ptr<patterned_window> _window;
    std::byte* _address = nullptr;
};

// UCP has no way to let a send fail while it packs (ucp_mem_type_pack).
TEST_P(stale_windows, are_sent_as_zeros_and_counted)
{
    logs().allow("are not inside a live window"); // a limited number per second
    const std::uint64_t before = count_failures().silent[std::to_underlying(failure_kind::read)];
    std::vector<std::byte> received(length(), std::byte{1});
    EXPECT_EQ(UCS_OK, pair().send_tag(address(), received.data(), length()));
    EXPECT_GT(count_failures().silent[std::to_underlying(failure_kind::read)], before);
    if (GetParam().unmapped) {
        EXPECT_TRUE(received == std::vector<std::byte>(length()));
    } else {
        EXPECT_EQ(std::byte{0}, received.back());
    }
    expect_that_others_go_on();
}

TEST_P(stale_windows, received_into_are_dropped_counted_and_end)
{
    logs().allow("are not inside a live window"); // a limited number per second
    const std::uint64_t before = count_failures().silent[std::to_underlying(failure_kind::write)];
    const auto sent            = pattern(length(), 1);
    EXPECT_EQ(UCS_OK, pair().send_tag(sent.data(), address(), length()));
    EXPECT_GT(count_failures().silent[std::to_underlying(failure_kind::write)], before);
    expect_that_others_go_on();
}

TEST_P(stale_windows, put_into_are_refused_and_both_sides_count_it)
{
    if (moves_windows_by_rendezvous()) {
        GTEST_SKIP() << no_failures_by_rendezvous;
    }
    logs().allow("are not inside a live window");
    const auto own              = std::to_underlying(failure_kind::peer_write);
    const auto told             = std::to_underlying(failure_kind::remote_write);
    const failure_counts before = count_failures();
    const auto sent             = pattern(length(), 1);
    const auto status           = pair().put(sent.data(), address(), length() - 1, UCS_MEMORY_TYPE_RDMA);
    const failure_counts after  = count_failures();
    // Releases of UCX that put into the own worker without a message give the initiator the error itself.
    if (status != UCS_ERR_INVALID_ADDR) {
        EXPECT_EQ(status, UCS_OK);
        EXPECT_GT(after.silent[own], before.silent[own]);
        EXPECT_GT(after.silent[told], before.silent[told]);
    }
    expect_that_others_go_on();
}

TEST_P(stale_windows, got_from_fail_at_the_initiator)
{
    if (moves_windows_by_rendezvous()) {
        GTEST_SKIP() << no_failures_by_rendezvous;
    }
    logs().allow("are not inside a live window");
    std::vector<std::byte> received(length());
    EXPECT_NE(UCS_OK, pair().get(address(), received.data(), length() - 1, UCS_MEMORY_TYPE_RDMA));
    expect_that_others_go_on();
}

INSTANTIATE_TEST_SUITE_P(matrix, stale_windows,
                         testing::Values(stale_case{"posix_small", "posix,lay_copy", 1000, 1000, true},
                                         stale_case{"posix_eager", "posix,lay_copy", 100000, 100000, true},
                                         stale_case{"posix_large", "posix,lay_copy", 10000000, 10000000, true},
                                         stale_case{"cma_large", "posix,cma,lay_copy", 10000000, 10000000, true},
                                         stale_case{"tcp_small", "tcp,lay_copy", 1000, 1000, true},
                                         stale_case{"tcp_large", "tcp,lay_copy", 10000000, 10000000, true},
                                         stale_case{"self_small", "self,lay_copy", 1000, 1000, true},
                                         stale_case{"posix_two_bytes_too_long", "posix,lay_copy", 1000, 1002, false},
                                         stale_case{"posix_too_long", "posix,lay_copy", 1000, 300000, false},
                                         stale_case{"tcp_too_long", "tcp,lay_copy", 1000, 300000, false}),
                         name_of);

} // namespace
