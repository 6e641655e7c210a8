// Windows and endpoints that come and go leave nothing behind, neither on the device nor in this process.
//
// UCXL_TEST_MAPS and UCXL_TEST_ENDPOINTS say how many; the defaults take some seconds.
#include "device_control.h"
#include "shown_memory.h"

#include "support/log_guard.h"

#include <chrono>
#include <cstdlib>
#include <format>
#include <fstream>
#include <string>

#include <malloc.h>
#include <unistd.h>

namespace ucxl::test
{
namespace
{

unsigned long number_of(const char* variable, unsigned long usual)
{
    const char* const text = std::getenv(variable);
    return text == nullptr ? usual : std::strtoul(text, nullptr, 10);
}

std::uint64_t resident_bytes()
{
    std::uint64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// 0 where a sanitizer has its own heap.
std::uint64_t heap_bytes()
{
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

struct usage {
    device_objects objects;
    std::uint64_t heap     = 0;
    std::uint64_t resident = 0;
};

void PrintTo(const usage& one, std::ostream* to)
{
    *to << testing::PrintToString(one.objects)
        << std::format(", {:.2f} MB of heap, {:.1f} MB resident", static_cast<double>(one.heap) / 1e6,
                       static_cast<double>(one.resident) / 1e6);
}

class growth : public ucx_test
{
protected:
    usage now() const { return {_device.objects(), heap_bytes(), resident_bytes()}; }

    // Between the usage after a tenth of all turns and after all of them.
    static void expect_none(const usage& early, const usage& late, unsigned long turns,
                            std::uint64_t heap_bytes_per_turn = 0)
    {
        EXPECT_LE(late.objects.keys, early.objects.keys + 5);
        EXPECT_EQ(late.objects.protection_domains, early.objects.protection_domains);
        EXPECT_LE(late.objects.queue_pairs, early.objects.queue_pairs + 5);
        EXPECT_LE(late.objects.completion_queues, early.objects.completion_queues + 5);
        EXPECT_EQ(late.objects.memic_bytes, early.objects.memic_bytes);
        const auto heap = turns * heap_bytes_per_turn;
        EXPECT_LE(late.heap, early.heap + (64 << 10) + heap);
        if (late.heap > 0) {
            EXPECT_LE(late.resident, early.resident + (16 << 20) + heap);
        }
        std::printf("after %lu turns: %s\nafter a tenth of them: %s\n", turns, testing::PrintToString(late).c_str(),
                    testing::PrintToString(early).c_str());
    }

    const device_control _device;
};

// Contents that change all the time, so that the window cache has to let windows go. It keeps 1024, and each needs a
// key, so the early usage is that of a full cache.
TEST_F(growth, there_is_none_when_windows_come_and_go)
{
    constexpr unsigned long kept = 1024;
    const unsigned long turns    = kept + number_of("UCXL_TEST_MAPS", 5000);
    own_peer peer;
    std::vector<std::byte> memory(8 << 20);
    std::vector<std::byte> host(64 * 300);
    usage early;
    for (unsigned long turn = 0; turn < turns; ++turn) {
        const auto layout = ucx_layout::layout::create_strided(64, {{100 + turn % 200, 160}});
        check(layout.has_value(), "ucp_layout_create");
        void* const base  = memory.data() + turn * 64 % (memory.size() - 160 * 300);
        const auto window = ucx_layout::window::map(peer.context(), *layout, base);
        check(window.has_value(), "ucp_layout_map in turn {}", turn);
        check(window->carrier() == UCP_LAYOUT_CARRIER_KEYS, "no key in turn {}", turn);
        if (turn % 100 == 0) {
            check_ok(peer.send(window->address(), host.data(), window->length()), "a send");
        }
        if (turn == kept + (turns - kept) / 10) {
            early = now();
        }
    }
    expect_none(early, now(), turns);
}

// Two workers that connect to each other, move one window, and part. Without error handling UCX keeps connected
// endpoints until their worker ends ("not destroying ep" in its ucp_ep.c), so these have it, and they close by force.
// Then UCX alone, over rc_x without this library, keeps some 700 bytes of a pair of endpoints until its worker ends.
TEST_F(growth, there_is_none_when_endpoints_come_and_go)
{
    const unsigned long turns = number_of("UCXL_TEST_ENDPOINTS", 100);
    own_peer home;
    shown_memory memory(spec::strided(spec::block(64), {{800, 160}}));
    check_ok(memory.map(home.context()), "ucp_layout_map");
    ASSERT_TRUE(memory.has_key()) << memory.why_no_key();
    std::vector<std::byte> host(memory.length());
    const ucp_worker_h workers[] = {open_worker(home.context()), open_worker(home.context())};
    const auto progress          = [&] {
        ucp_worker_progress(workers[0]);
        ucp_worker_progress(workers[1]);
    };
    ucp_ep_params_t params{};
    params.field_mask     = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode       = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    const ucp_request_param_t param{};
    ucp_request_param_t by_force{};
    by_force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    by_force.flags        = UCP_EP_CLOSE_FLAG_FORCE;
    // UCX destroys a queue pair when the device has told a thread of UCX that it is empty.
    const auto unused          = _device.objects().queue_pairs;
    const auto wait_for_closed = [&] {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (_device.objects().queue_pairs > unused) {
            check(std::chrono::steady_clock::now() < deadline, "{} queue pairs are left",
                  _device.objects().queue_pairs);
            progress();
        }
    };
    usage early;
    for (unsigned long turn = 0; turn < turns; ++turn) {
        const ucp_ep_h endpoints[] = {connect(workers[0], address_of(workers[1]), params),
                                      connect(workers[1], address_of(workers[0]), params)};
        auto* const received       = ucp_tag_recv_nbx(workers[1], host.data(), host.size(), turn, UINT64_MAX, &param);
        check_ok(finish(ucp_tag_send_nbx(endpoints[0], memory.window().address(), host.size(), turn, &param), progress),
                 "a send");
        check_ok(finish(received, progress), "a receive");
        for (const ucp_ep_h endpoint : endpoints) {
            check_ok(finish(ucp_ep_flush_nbx(endpoint, &param), progress), "ucp_ep_flush_nbx");
        }
        const ucs_status_ptr_t closing[] = {ucp_ep_close_nbx(endpoints[0], &by_force),
                                            ucp_ep_close_nbx(endpoints[1], &by_force)};
        for (auto* const request : closing) {
            check_ok(finish(request, progress), "ucp_ep_close_nbx");
        }
        if (turn % 16 == 0 || turn == turns / 10) {
            wait_for_closed();
        }
        if (turn == turns / 10) {
            early = now();
        }
    }
    wait_for_closed();
    const usage late = now();
    for (const ucp_worker_h worker : workers) {
        ucp_worker_destroy(worker);
    }
    expect_none(early, late, turns, 800);
}

// A window with a key of its own for each transfer.
TEST_F(growth, there_is_none_when_peers_get_keys_of_their_own)
{
    const unsigned long turns = number_of("UCXL_TEST_MAPS", 5000) / 10;
    own_peer peer({.error_handling = true});
    shown_memory memory(spec::strided(spec::block(64), {{801, 160}}));
    std::vector<std::byte> host(memory.length());
    usage early;
    for (unsigned long turn = 0; turn < turns; ++turn) {
        check_ok(memory.map(peer.context()), "ucp_layout_map");
        check_ok(peer.send(memory.window().address(), host.data(), host.size()), "a send");
        memory.unmap();
        if (turn == turns / 10) {
            early = now();
        }
    }
    expect_none(early, now(), turns);
}

} // namespace
} // namespace ucxl::test
