// The firmware fails, or the card is removed, while windows have keys: binds end with an error, windows can be made and
// are copied, they can be released, and a new context works when the card is back.
//
// UCX 1.18.1 without this library (rc_x, host memory) never ends a request whose device is lost. Once the endpoint was
// closed by force, ucp_worker_progress ends the process ("failed to arm iface"), and ucp_worker_destroy without it may
// free memory twice (ucs_callbackq_cleanup). So a transfer has only to bring nothing wrong, nobody waits for it, and
// the process ends with its worker.
#include "device_control.h"
#include "lost_device.h"
#include "shown_memory.h"

#include "support/process.h"

#include <cstdio>
#include <exception>
#include <format>
#include <string>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

using namespace std::literals;

void use_again()
{
    own_peer peer;
    shown_memory memory(spec::strided(spec::block(64), {{700, 160}}));
    check_ok(memory.map(peer.context()), "ucp_layout_map in a new context");
    memory.exchange(peer);
    check(memory.has_key(), "a window in a new context has no key: {}", memory.why_no_key());
}

void lose(own_peer& peer, const char* kind, std::string_view occasion)
{
    const device_control device;
    shown_memory first(spec::strided(spec::block(64), {{600, 160}}));
    shown_memory second(spec::strided(spec::block(64), {{601, 160}}));
    shown_memory later(spec::strided(spec::block(64), {{602, 160}}));
    for (shown_memory* const each : {&first, &second}) {
        check_ok(each->map(peer.context()), "ucp_layout_map");
        each->exchange(peer);
        check(each->has_key(), "a window has no key: {}", each->why_no_key());
    }
    std::vector<std::byte> host(first.length());
    device.fail(std::format("{}:{},time=1ms", kind, occasion));
    if (occasion == "umr") {
        check(second.rebind() != UCS_OK, "a rebind on a lost device was UCS_OK");
    } else {
        check(peer.try_send(first.window().address(), host.data(), host.size(), 300ms) != UCS_OK,
              "a message over a lost device was UCS_OK");
    }
    check(device.stop_failing(), "the device was not lost");
    check(first.rebind() != UCS_OK, "a rebind on the lost device was UCS_OK");
    check_ok(later.map(peer.context()), "ucp_layout_map on the lost device");
    check(!later.has_key(), "a window has a key on the lost device");
    for (const shown_memory* const each : {&first, &second, &later}) {
        each->verify();
    }
}

class lost_device : public testing::TestWithParam<std::tuple<const char*, const char*>>
{
};

TEST_P(lost_device, leaves_windows_that_are_copied)
{
    const auto& [kind, occasion] = GetParam();
    process child(program_path(), {"--lose-device", kind, occasion});
    const auto ended = child.wait();
    EXPECT_EQ(ended.status, 0) << ended.output(); // UCX logs the event, and much more
}

INSTANTIATE_TEST_SUITE_P(every, lost_device,
                         testing::Combine(testing::Values("fatal", "remove"), testing::Values("rdma_read", "umr")),
                         [](const auto& each) { return std::get<0>(each.param) + "_at_"s + std::get<1>(each.param); });

} // namespace

void lose_device(const char* kind, const char* occasion)
{
    try {
        own_peer peer({.error_handling = true});
        lose(peer, kind, occasion);
        use_again();
        _exit(0);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "FAILED: %s\n", failure.what());
        _exit(1);
    }
}

} // namespace ucxl::test
