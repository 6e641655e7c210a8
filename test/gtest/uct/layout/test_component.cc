// What the component tells UCX, and what its operations do with addresses of every kind.
#include "patterned_window.h"
#include "uct_iface_fixture.h"

#include "support/forked_process.h"

#include "abi/window_types.h"
#include "ucs/window/domain_query.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/base/window_copy.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/init.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>
#include <unistd.h>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

class component : public uct_iface_test
{
protected:
    static std::uint64_t remote(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }
    static uct_iov_t iov_of(void* buffer, std::size_t length) { return {buffer, length, nullptr, 0, 1}; }
};

TEST_F(component, is_registered_once)
{
    uct_layout_init();
    uct_layout_init();
    EXPECT_EQ(layout_components().size(), 1u);
}

TEST_F(component, memory_domain_detects_windows_and_registers_what_it_advertises)
{
    uct_md_attr_t attr;
    ASSERT_EQ(UCS_OK, uct_md_query(md, &attr));
    const auto host   = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    const auto& types = ucxl::abi::types_of_windows();
    EXPECT_EQ(attr.cap.reg_mem_types, host | types.served);
    EXPECT_EQ(attr.cap.access_mem_types & ~host, types.served); // some releases of UCX also need host memory here
    EXPECT_EQ(attr.cap.detect_mem_types, types.own());
    EXPECT_EQ(types.staged, UCS_MEMORY_TYPE_ROCM) << "no machine that runs this test has such a GPU";
    EXPECT_EQ(attr.cap.flags & UCT_MD_FLAG_NEED_RKEY, 0u);

    patterned_window view({8, 16}, 100, 1);
    char host_memory[16];
    ucs_memory_type_t type = UCS_MEMORY_TYPE_LAST;
    EXPECT_EQ(UCS_OK, uct_md_detect_memory_type(md, view.address(), 100, &type));
    EXPECT_EQ(type, UCS_MEMORY_TYPE_RDMA);
    patterned_window staged({8, 16}, 100, 1, window_carrier::copies);
    EXPECT_EQ(UCS_OK, uct_md_detect_memory_type(md, staged.address(), 100, &type));
    EXPECT_EQ(type, types.staged);
    EXPECT_NE(UCS_OK, uct_md_detect_memory_type(md, host_memory, 16, &type));
    for (void* address : {static_cast<void*>(view.address()), static_cast<void*>(host_memory)}) {
        uct_mem_h memh = nullptr;
        ASSERT_EQ(UCS_OK, uct_md_mem_reg(md, address, 16, 0, &memh));
        EXPECT_NE(memh, nullptr);
        EXPECT_EQ(UCS_OK, uct_md_mem_dereg(md, memh));
    }
}

TEST_F(component, memory_query_fills_in_every_field_asked_for)
{
    patterned_window view({8, 16}, 100, 1);
    uct_md_mem_attr_t attr;
    attr.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE | UCT_MD_MEM_ATTR_FIELD_SYS_DEV |
                      UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS | UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH |
                      UCT_MD_MEM_ATTR_FIELD_DMABUF_FD | UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET;
    ASSERT_EQ(UCS_OK, uct_md_mem_query(md, view.address() + 8, 50, &attr));
    EXPECT_EQ(attr.mem_type, UCS_MEMORY_TYPE_RDMA);
    EXPECT_EQ(attr.sys_dev, UCS_SYS_DEVICE_ID_UNKNOWN);
    EXPECT_EQ(attr.base_address, view.address() + 8);
    EXPECT_EQ(attr.alloc_length, 50u);
    EXPECT_EQ(attr.dmabuf_fd, UCT_DMABUF_FD_INVALID);
    patterned_window staged({8, 16}, 100, 1, window_carrier::copies);
    ASSERT_EQ(UCS_OK, uct_md_mem_query(md, staged.address() + 8, 50, &attr));
    EXPECT_EQ(attr.mem_type, ucxl::abi::types_of_windows().staged);
    EXPECT_NE(UCS_OK, uct_md_mem_query(md, &attr, 1, &attr));
}

TEST_F(component, reaches_only_itself)
{
    std::uint64_t address;
    ASSERT_EQ(UCS_OK, uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t*>(&address)));
    const auto reaches = [&] {
        return uct_iface_is_reachable(iface, nullptr, reinterpret_cast<const uct_iface_addr_t*>(&address));
    };
    EXPECT_TRUE(reaches());
    ++address;
    EXPECT_FALSE(reaches());
    EXPECT_FALSE(uct_iface_is_reachable(iface, nullptr, nullptr));
}

TEST_F(component, event_descriptor_can_be_armed_and_stays_silent)
{
    int fd = -1;
    ASSERT_EQ(UCS_OK, uct_iface_event_fd_get(iface, &fd));
    EXPECT_EQ(UCS_OK, uct_iface_event_arm(iface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV));
    pollfd one{fd, POLLIN, 0};
    EXPECT_EQ(0, poll(&one, 1, 0));
}

TEST_F(component, operations_move_sub_ranges_between_windows_and_host)
{
    patterned_window view({24, 40}, 1000, 3);
    auto expected = view.packed();
    for (const auto& [offset, length] :
         {std::pair{0u, 1000u}, {1u, 998u}, {23u, 2u}, {24u, 24u}, {999u, 1u}, {500u, 0u}}) {
        std::vector<std::byte> host(length + 1);
        ASSERT_EQ(UCS_OK, uct_ep_get_short(ep, host.data(), length, remote(view.address() + offset), 0));
        EXPECT_TRUE(std::ranges::equal(std::span(host).first(length), std::span(expected).subspan(offset, length)));
        auto fresh = pattern(length + 1, static_cast<std::uint8_t>(offset + 9));
        ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, fresh.data(), length, remote(view.address() + offset), 0));
        std::copy_n(fresh.begin(), length, expected.begin() + offset);
        EXPECT_TRUE(view.packed() == expected);

        const uct_iov_t out = iov_of(host.data(), length);
        ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &out, 1, remote(view.address() + offset), 0, nullptr));
        EXPECT_TRUE(std::ranges::equal(std::span(host).first(length), std::span(expected).subspan(offset, length)));
        fresh               = pattern(length + 1, static_cast<std::uint8_t>(offset + 10));
        const uct_iov_t iov = iov_of(fresh.data(), length);
        ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &iov, 1, remote(view.address() + offset), 0, nullptr));
        std::copy_n(fresh.begin(), length, expected.begin() + offset);
        EXPECT_TRUE(view.packed() == expected);
    }
    EXPECT_TRUE(view.gaps_untouched());
}

TEST_F(component, what_is_moved_through_a_window_is_counted)
{
    patterned_window view({8, 16}, 100, 1);
    const window* const found = window_registry::instance().find(view.address(), 100);
    std::array<std::byte, 100> host{};
    ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, host.data(), 60, remote(view.address() + 7), 0));
    ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, host.data(), 0, remote(view.address() + 7), 0));
    const uct_iov_t out = iov_of(host.data(), 100);
    ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &out, 1, remote(view.address()), 0, nullptr));
    const auto moved = found->traffic().get();
    EXPECT_EQ(1u, moved.reads);
    EXPECT_EQ(100u, moved.bytes_read);
    EXPECT_EQ(1u, moved.writes);
    EXPECT_EQ(60u, moved.bytes_written);
}

TEST_F(component, operations_move_between_two_windows_and_leave_other_memory_alone)
{
    for (const auto carrier : {window_carrier::keys, window_carrier::copies}) {
        patterned_window from({24, 40}, 1000, 3, carrier);
        patterned_window to({7, 9}, 1000, 4, window_carrier::copies);
        ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, from.address() + 10, 900, remote(to.address() + 50), 0));
        const auto sent    = from.packed();
        const auto arrived = to.packed();
        EXPECT_TRUE(std::ranges::equal(std::span(arrived).subspan(50, 900), std::span(sent).subspan(10, 900)));
        EXPECT_TRUE(to.gaps_untouched());
    }
    logs().allow("not inside a live window"); // a limited number per second
    const auto source = pattern(100, 5);
    std::vector<std::byte> target(100);
    ASSERT_EQ(UCS_OK, uct_ep_put_short(ep, source.data(), 100, remote(target.data()), 0));
    EXPECT_TRUE(target == std::vector<std::byte>(100)) << "a peer may have said that it is a window";
}

TEST_F(component, zero_copy_operations_move_between_any_memory_of_the_process)
{
    patterned_window view({24, 40}, 1000, 3);
    auto host       = pattern(900, 4);
    uct_iov_t local = iov_of(view.address() + 50, 900);
    ASSERT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &local, 1, remote(host.data()), 0, nullptr));
    const auto packed = view.packed();
    EXPECT_TRUE(std::ranges::equal(std::span(packed).subspan(50, 900), host));
    std::vector<std::byte> target(900);
    ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &local, 1, remote(target.data()), 0, nullptr));
    EXPECT_TRUE(target == host);
    std::vector<std::byte> other(900);
    local = iov_of(host.data(), 900);
    ASSERT_EQ(UCS_OK, uct_ep_put_zcopy(ep, &local, 1, remote(other.data()), 0, nullptr));
    EXPECT_TRUE(other == host);
    EXPECT_TRUE(view.gaps_untouched());
}

TEST_F(component, addresses_outside_every_live_window_move_nothing)
{
    logs().allow("not inside a live window"); // a limited number per second
    patterned_window view({8, 16}, 100, 1);
    const auto packed = view.packed();
    auto gone         = std::make_unique<patterned_window>(window_shape{8, 16}, 100, 2);
    std::byte* stale  = gone->address();
    gone.reset();
    // A stale range, ranges beyond and across the end, and a range of the arena that was never a window.
    for (std::byte* address :
         {stale, view.address() + 100, view.address() + 90,
          window_registry::instance().arena_base() + window_registry::instance().arena_length() - 20}) {
        auto host         = pattern(20, 6);
        const auto before = host;
        uct_iov_t iov     = iov_of(host.data(), 20);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote(address), 0, nullptr));
        EXPECT_EQ(UCS_OK, uct_ep_put_short(ep, host.data(), 20, remote(address), 0));
        EXPECT_TRUE(host == before);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_get_zcopy(ep, &iov, 1, remote(address), 0, nullptr));
        EXPECT_TRUE(host == std::vector<std::byte>(20)) << "the pipelines send what a fragment holds";
        host = before;
        EXPECT_EQ(UCS_OK, uct_ep_get_short(ep, host.data(), 20, remote(address), 0));
        EXPECT_TRUE(host == std::vector<std::byte>(20)) << "no byte of something else may be sent instead";
        iov = iov_of(address, 20);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, uct_ep_put_zcopy(ep, &iov, 1, remote(view.address()), 0, nullptr));
    }
    EXPECT_TRUE(view.packed() == packed);
}

TEST_F(component, failures_are_all_counted_and_told_but_logged_ten_a_second)
{
    logs().allow("not inside a live window"); // a limited number per second
    static unsigned told = 0;
    watch_failures([](const failure& seen, void* arg) { told += seen.silent && arg == &told ? 1 : 0; }, &told);
    const auto before = count_failures();
    patterned_window view({8, 16}, 100, 1);
    char byte        = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(UCS_OK, uct_ep_put_short(ep, &byte, 1, remote(view.address() + 100), 0));
    }
    watch_failures(nullptr, nullptr);
    EXPECT_EQ(UCS_OK, uct_ep_put_short(ep, &byte, 1, remote(view.address() + 100), 0));
    EXPECT_EQ(1000u, told);
    const auto kind = std::to_underlying(failure_kind::write);
    EXPECT_EQ(before.all[kind] + 1001, count_failures().all[kind]);
    EXPECT_EQ(before.silent[kind] + 1001, count_failures().silent[kind]);
    while (logs().count("not inside a live window") == 0) { // other tests may have used up this second's messages
        report_failure({failure_kind::write, "test", 0, 1, not_in_a_window, true});
    }
    EXPECT_GE(count_failures().all[kind], before.all[kind] + 1001);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    EXPECT_LE(logs().count("not inside a live window"), 10u * static_cast<unsigned>(seconds.count() + 2));
    failure_counts seen;
    ASSERT_TRUE(count_failures_of(getpid(), seen)) << "as another process would";
    EXPECT_EQ(count_failures().all, seen.all);
    EXPECT_EQ(count_failures().silent, seen.silent);
}

TEST_F(component, failures_are_shown_in_the_virtual_file_system)
{
    logs().allow("not inside a live window");
    report_failure({failure_kind::peer_write, "test", 0, 1, not_in_a_window, true});
    const auto read = [](const char* path) {
        ucs_string_buffer_t text;
        ucs_string_buffer_init(&text);
        EXPECT_EQ(UCS_OK, ucs_vfs_path_read_file(path, &text)) << path;
        const std::string content = ucs_string_buffer_cstr(&text);
        ucs_string_buffer_cleanup(&text);
        return content;
    };
    const auto kind             = std::to_underlying(failure_kind::peer_write);
    const failure_counts counts = count_failures();
    EXPECT_EQ(std::to_string(counts.all[kind]) + "\n", read("/layout/failures/peer_write"));
    EXPECT_EQ(std::to_string(counts.silent[kind]) + "\n", read("/layout/failures/silent/peer_write"));
}

TEST_F(component, a_forked_process_counts_its_own_failures)
{
    logs().allow("not inside a live window");
    report_failure({failure_kind::read, "test", 0, 1, not_in_a_window, true});
    ASSERT_NE(0u, count_failures().all[0]);
    EXPECT_TRUE(holds_in_child([] {
        const bool is_empty = count_failures().all[0] == 0;
        report_failure({failure_kind::write, "test", 0, 1, not_in_a_window, true});
        failure_counts seen;
        const bool is_seen = count_failures_of(getpid(), seen) && seen.all == count_failures().all;
        return is_empty && is_seen && count_failures().all[1] == 1;
    }));
}

const void* closed_md = nullptr;

TEST_F(component, domain_answers_queries_of_its_thread_and_tells_its_closing)
{
    char memory[1];
    uct_mem_h memh;
    {
        const domain_query query;
        std::thread([&] { ASSERT_EQ(UCS_OK, uct_md_mem_reg(md, memory, 1, 0, &memh)); }).join();
        EXPECT_EQ(query.found.copying, nullptr) << "another thread asks nothing";
        ASSERT_EQ(UCS_OK, uct_md_mem_dereg(md, memh));
        ASSERT_EQ(UCS_OK, uct_md_mem_reg(md, memory, 1, 0, &memh));
        EXPECT_EQ(query.found.copying, md);
        ASSERT_EQ(UCS_OK, uct_md_mem_dereg(md, memh));
    }
    EXPECT_EQ(domain_query::current(), nullptr);
    EXPECT_TRUE(on_md_close([](const void* closing) { closed_md = closing; }));
    uct_md_h other;
    uct_md_config_t* config;
    ASSERT_EQ(UCS_OK, uct_md_config_read(uct_iface_test::component, nullptr, nullptr, &config));
    ASSERT_EQ(UCS_OK, uct_md_open(uct_iface_test::component, "layout", config, &other));
    uct_config_release(config);
    uct_md_close(other);
    EXPECT_EQ(closed_md, other);
}

} // namespace
