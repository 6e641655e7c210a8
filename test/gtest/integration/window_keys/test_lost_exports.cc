// The firmware fails, or the card is removed, while memory is exported and imported: both functions of a card fail
// together, so that of the host and that of the DPU are lost at once. Or one of them is reset, and the other side goes
// on. Errors surface, nothing hangs or stays on the device, and new contexts work when the card is back.
//
// The contexts that are lost have no workers: UCX 1.18.1 cannot end those (test_lost_device.cc). What requests of
// the DPU do is seen in a process of its own.
#include "device_control.h"
#include "dpu.h"
#include "lost_device.h"
#include "own_peer.h"
#include "shown_memory.h"

#include "support/log_guard.h"
#include "support/process.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <format>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

namespace ucxl::test
{
namespace
{

using namespace std::literals;

constexpr auto bound = 5s;

// With a new context of the DPU.
void share_again(const own_peer& host, plain_buffer& buffer)
{
    dpu_side dpu;
    shown_memory window(spec::strided(spec::block(64), {{710, 160}}));
    check_ok(window.map(host.context()), "ucp_layout_map in a new context");
    check(!exported(window.window().memh()).empty(), "a window was not exported again");
    const auto packed = exported(buffer.memh());
    check(is_of_the_library(packed), "a buffer was not exported by the library again");
    const imported_memory imported(dpu.context(), packed);
    check_ok(imported.status(), "import again");
    buffer.bytes().front() = std::byte{0x77};
    std::vector<std::byte> got(buffer.bytes().size());
    check_ok(dpu.read(imported, buffer.address(), got), "a read, later");
    check(std::ranges::equal(got, buffer.bytes()), "the DPU has read other bytes");
}

void share_again()
{
    const own_peer host;
    plain_buffer buffer(host.context());
    share_again(host, buffer);
}

class lost_exports : public testing::TestWithParam<const char*>
{
protected:
    log_guard _logs;
};

TEST_P(lost_exports, are_refused_and_leave_nothing)
{
    _logs.allow(""); // UCX says of each object that it is lost
    share_again();   // the device notices that processes of earlier tests have ended
    const device_control device;
    const auto before = device.objects();
    const auto begin  = std::chrono::steady_clock::now();
    {
        const test::context host("rc_x,lay_copy");
        const test::context importing(dpu_context());
        plain_buffer first(host.get()), second(host.get()), third(host.get());
        shown_memory window(spec::strided(spec::block(64), {{711, 160}}));
        check_ok(window.map(host.get()), "ucp_layout_map");
        const auto packed        = exported(first.memh());
        const auto packed_window = exported(window.window().memh());
        const auto not_imported  = exported(third.memh());
        for (const auto& each : {packed, packed_window, not_imported}) {
            ASSERT_TRUE(is_of_the_library(each));
        }
        std::optional<imported_memory> imported(std::in_place, importing.get(), packed);
        std::optional<imported_memory> imported_window(std::in_place, importing.get(), packed_window);
        ASSERT_EQ(imported->status(), UCS_OK);
        ASSERT_EQ(imported_window->status(), UCS_OK);
        device.fail(std::format("{}:umr,time=1ms", GetParam()));
        EXPECT_TRUE(exported(second.memh()).empty()) << "the export that loses the device";
        ASSERT_TRUE(device.stop_failing());
        EXPECT_TRUE(exported(second.memh()).empty());
        EXPECT_EQ(exported(first.memh()), packed) << "what was exported before costs nothing";
        EXPECT_NE(imported_memory(importing.get(), not_imported).status(), UCS_OK);
        window.unmap();
        imported.reset();
        imported_window.reset();
        first.unmap();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, bound);
    EXPECT_EQ(device.objects(), before);
    EXPECT_NO_THROW(share_again());
    EXPECT_EQ(device.objects(), before);
}

INSTANTIATE_TEST_SUITE_P(every, lost_exports, testing::Values("fatal", "remove"),
                         [](const auto& each) { return each.param; });

class reset_of_the_host : public testing::Test
{
protected:
    log_guard _logs;
};

TEST_F(reset_of_the_host, ends_what_was_exported_and_the_dpu_goes_on)
{
    _logs.allow(""); // UCX says of each object that it is lost
    const device_control device;
    const auto before = device.objects();
    auto own_dpu      = std::make_unique<dpu_side>();
    dpu_side& dpu     = *own_dpu;
    const auto begin  = std::chrono::steady_clock::now();
    std::vector<std::byte> lost;
    {
        const test::context host({.config = {{"TLS", "rc_x,lay_copy"}, {"NET_DEVICES", host_device}}});
        plain_buffer first(host.get()), second(host.get());
        shown_memory window(spec::strided(spec::block(64), {{712, 160}}));
        check_ok(window.map(host.get()), "ucp_layout_map");
        lost                     = exported(first.memh());
        const auto packed_window = exported(window.window().memh());
        ASSERT_TRUE(is_of_the_library(lost) && is_of_the_library(packed_window));
        const imported_memory imported(dpu.context(), lost);
        const imported_memory imported_window(dpu.context(), packed_window);
        ASSERT_EQ(imported.status(), UCS_OK);
        ASSERT_EQ(imported_window.status(), UCS_OK);
        std::vector<std::byte> got(first.bytes().size());
        EXPECT_EQ(dpu.read(imported, first.address(), got), UCS_OK);
        device.fail("reset:umr");
        EXPECT_TRUE(exported(second.memh()).empty()) << "the export at which the function is reset";
        ASSERT_TRUE(device.stop_failing());
        EXPECT_NE(dpu.read(imported, first.address(), got), UCS_OK);
        got.resize(window.length());
        EXPECT_NE(dpu.read(imported_window, window.window().address(), got), UCS_OK);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, bound);
    {
        const own_peer host;
        plain_buffer buffer(host.context());
        const auto packed = exported(buffer.memh());
        ASSERT_TRUE(is_of_the_library(packed));
        const imported_memory imported(dpu.context(), packed);
        check_ok(imported.status(), "import from a new context");
        buffer.bytes().front() = std::byte{0x78};
        std::vector<std::byte> got(buffer.bytes().size());
        EXPECT_EQ(dpu.read(imported, buffer.address(), got), UCS_OK);
        EXPECT_TRUE(std::ranges::equal(got, buffer.bytes()));
        const imported_memory again(dpu.context(), lost);
        if (again.status() == UCS_OK) {
            EXPECT_NE(dpu.read(again, buffer.address(), got), UCS_OK) << "by a handle from before the reset";
        }
    }
    own_dpu.reset();
    EXPECT_EQ(device.objects(), before);
}

class lost_imports : public testing::TestWithParam<const char*>
{
};

TEST_P(lost_imports, bring_nothing_and_new_contexts_work)
{
    process child(program_path(), {"--lose-device", GetParam(), "import"});
    const auto ended = child.wait();
    EXPECT_EQ(ended.status, 0) << ended.output(); // UCX logs the event, and much more
}

INSTANTIATE_TEST_SUITE_P(every, lost_imports, testing::Values("fatal", "remove", "reset"),
                         [](const auto& each) { return each.param; });

void lose_imports(const char* kind)
{
    const device_control device;
    const own_peer host({.error_handling = true});
    dpu_side dpu;
    plain_buffer buffer(host.context());
    const auto packed = exported(buffer.memh());
    imported_memory imported(dpu.context(), packed);
    check_ok(imported.status(), "import");
    std::vector<std::byte> got(buffer.bytes().size());
    check_ok(dpu.read(imported, buffer.address(), got), "a read");
    const bool is_only_of_the_dpu = kind == "reset"sv;
    device.fail(std::format("{}:rdma_write{}", kind, is_only_of_the_dpu ? "" : ",time=1ms"));
    dpu.lose_patience_after(300ms);
    check(dpu.read(imported, buffer.address(), got) != UCS_OK, "a read over a lost device was UCS_OK");
    check(device.stop_failing(), "the device was not lost");
    share_again();
    if (is_only_of_the_dpu) {
        share_again(host, buffer);
    }
    std::fflush(stdout);
    _exit(0); // no worker can be ended
}

} // namespace

void lose_device_of_imports(const char* kind)
{
    try {
        lose_imports(kind);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "FAILED: %s\n", failure.what());
        _exit(1);
    }
}

} // namespace ucxl::test
