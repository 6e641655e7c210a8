// The firmware fails, or the card is removed, while windows have keys: binds end with an error, windows can be made and
// are copied, they can be released, and a new context works when the card is back.
//
// UCX 1.18.1 without this library (rc_x, host memory) never ends a request whose device is lost. Once the endpoint was
// closed by force, ucp_worker_progress ends the process ("failed to arm iface"), and ucp_worker_destroy without it may
// free memory twice (ucs_callbackq_cleanup). So a transfer has only to bring nothing wrong, nobody waits for it, and the
// worker stays until the process ends.
#include "device_control.h"
#include "shown_memory.h"

#include "support/log_guard.h"

#include <format>
#include <memory>
#include <string>
#include <vector>

namespace ucxl::test
{
namespace
{

using namespace std::literals;

struct moment {
    const char* name;
    const char* fault; // without its kind
};

void PrintTo(const moment& one, std::ostream* to)
{
    *to << one.name;
}

class lost_device : public testing::TestWithParam<std::tuple<const char*, moment>>
{
protected:
    lost_device() { _logs.allow(""); } // UCX logs the event and what it cannot release

    static own_peer& peer_for_good()
    {
        static auto& all = *new std::vector<std::unique_ptr<own_peer>>;
        return *all.emplace_back(std::make_unique<own_peer>(own_peer_options{.error_handling = true}));
    }

    static void use_again()
    {
        own_peer peer;
        shown_memory memory(spec::strided(spec::block(64), {{700, 160}}));
        check_ok(memory.map(peer.context()), "ucp_layout_map");
        memory.exchange(peer);
        EXPECT_TRUE(memory.has_key());
    }

    log_guard _logs;
    const device_control _device;
};

TEST_P(lost_device, leaves_windows_that_are_copied)
{
    const auto& [kind, moment] = GetParam();
    {
        own_peer& peer = peer_for_good();
        shown_memory first(spec::strided(spec::block(64), {{600, 160}}));
        shown_memory second(spec::strided(spec::block(64), {{601, 160}}));
        shown_memory later(spec::strided(spec::block(64), {{602, 160}}));
        for (shown_memory* const each : {&first, &second}) {
            check_ok(each->map(peer.context()), "ucp_layout_map");
            each->exchange(peer);
            EXPECT_TRUE(each->has_key());
        }
        std::vector<std::byte> host(first.length());
        _device.fail(std::format("{}:{},time=1ms", kind, moment.fault));
        if (moment.fault == "umr"sv) {
            EXPECT_NE(second.rebind(), UCS_OK);
        } else {
            EXPECT_NE(peer.try_send(first.window().address(), host.data(), host.size(), 300ms), UCS_OK);
        }
        EXPECT_TRUE(_device.stop_failing());
        EXPECT_NE(first.rebind(), UCS_OK);
        EXPECT_EQ(later.map(peer.context()), UCS_OK);
        EXPECT_FALSE(later.has_key());
        for (const shown_memory* const each : {&first, &second, &later}) {
            each->verify();
        }
    }
    use_again();
}

constexpr moment moments[] = {
    {"while_a_window_is_read", "rdma_read"},
    {"while_a_key_is_bound", "umr"},
};

INSTANTIATE_TEST_SUITE_P(every, lost_device,
                         testing::Combine(testing::Values("fatal", "remove"), testing::ValuesIn(moments)),
                         [](const auto& each) {
                             return std::get<0>(each.param) + "_"s + std::get<1>(each.param).name;
                         });

} // namespace
} // namespace ucxl::test
