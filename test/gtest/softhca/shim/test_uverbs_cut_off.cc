// Contexts whose card was removed, or recovered from a failure.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "prm/eq.h"
#include "softhca/core/arena/host.h"
#include "softhca/shim/host/event_record.h"
#include "verbs_maker.h"

namespace ucxl::softhca::test
{
namespace
{

class uverbs_cut_off : public testing::Test
{
protected:
    void change(change_kind kind) { EXPECT_TRUE(program.process.device().change({.kind = kind, .function = 0})); }

    // What the program gets when it reads one event and the end of the channel.
    ssize_t read_end(int fd, event_format format, std::size_t events_before)
    {
        std::vector<std::byte> bytes(events_before * event_bytes(format), std::byte{1});
        bytes.insert(bytes.end(), event_bytes(format), std::byte{0xff});
        errno = 0;
        return program.device->was_read(fd, bytes);
    }

    int alloc_pd(int fd)
    {
        ib_uverbs_alloc_pd_resp response{};
        return write_command(program, fd, IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, response);
    }

    test_machine machine;
    kernel_program program{machine};
    verbs_maker maker{program};
    ib_uverbs_destroy_cq_resp cq_told{};
    ib_uverbs_destroy_qp_resp qp_told{};
};

TEST_F(uverbs_cut_off, can_destroy_all_they_made_and_nothing_else)
{
    const auto cq  = maker.make_cq(15, program.completion_channel(maker.fd));
    const auto srq = maker.make_srq(7);
    const auto qp  = maker.make_qp(IB_UVERBS_QPT_RC, cq, cq, &srq);
    const auto mr  = maker.make_mr(program.room(4096), IB_UVERBS_ACCESS_LOCAL_WRITE);
    const auto dm  = maker.make_dm(4096);
    change(change_kind::remove);
    EXPECT_EQ(alloc_pd(maker.fd), EIO);
    EXPECT_EQ(maker.modify_qp({}), EIO);
    EXPECT_EQ(maker.destroy_qp(qp, qp_told), 0);
    EXPECT_EQ(maker.destroy_srq(srq), 0);
    EXPECT_EQ(maker.destroy_cq(cq, cq_told), 0);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MR, mr.handle), 0);
    EXPECT_EQ(machine.memory().qps.live, 0u);
    EXPECT_EQ(machine.memory().mkeys.live, 0u);
    program.device->closing(maker.fd);
    EXPECT_EQ(machine.memory().pds.live, 0u);
    EXPECT_EQ(machine.memory().uars.live, 0u);
    EXPECT_EQ(machine.memory().counts.memic_used, 0u);
    EXPECT_EQ(dm.error, 0);
}

TEST_F(uverbs_cut_off, stay_so_when_the_card_is_back)
{
    change(change_kind::remove);
    EXPECT_EQ(program.open(), -2) << "no such file";
    change(change_kind::recover);
    EXPECT_EQ(alloc_pd(maker.fd), EIO);
    const int anew = program.open_context();
    EXPECT_EQ(alloc_pd(anew), 0);
}

TEST_F(uverbs_cut_off, have_channels_that_end_behind_their_unread_events)
{
    const int channel = program.completion_channel(maker.fd);
    EXPECT_EQ(program.host.writers.size(), 2u);
    EXPECT_EQ(machine.memory().channels.live, 2u);
    change(change_kind::remove);
    ASSERT_EQ(machine.notifications.size(), 3u);
    EXPECT_EQ(machine.notifications[0].type, event_code(prm::event_type::local_catastrophic));
    EXPECT_EQ(machine.notifications[0].route.value, 1u) << "the port";
    EXPECT_EQ(machine.notifications[1].type, channel_ends);
    EXPECT_EQ(machine.notifications[2].type, channel_ends);
    EXPECT_EQ(read_end(maker.async_fd, event_format::async, 2), 32) << "the events";
    EXPECT_TRUE(program.host.writers.empty()) << "pollers see a hangup";
    EXPECT_EQ(machine.memory().channels.live, 0u);
    EXPECT_EQ(read_end(channel, event_format::completion, 0), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(program.device->was_read(channel, {}), -1) << "the end of a pipe";
    EXPECT_EQ(errno, EIO);
}

TEST_F(uverbs_cut_off, count_the_events_that_were_read_before)
{
    const auto cq    = maker.make_cq(15, -1, 0x1000);
    auto& record     = machine.memory().cqs.records[cq.number];
    const auto raise = [&] {
        program.process.notify(program.process.id(), record.error_events, event_code(prm::event_type::cq_error));
    };
    raise();
    raise();
    machine.notifications.pop_back(); // read by the program
    change(change_kind::remove);
    EXPECT_EQ(alloc_pd(maker.fd), EIO);
    EXPECT_EQ(maker.destroy_cq(cq, cq_told), 0);
    EXPECT_EQ(cq_told.async_events_reported, 1u) << "and the unread one is gone";
}

TEST_F(uverbs_cut_off, are_not_those_of_a_card_that_only_failed)
{
    change(change_kind::fatal);
    EXPECT_EQ(alloc_pd(maker.fd), EIO) << "the device refuses";
    const auto open = [&] {
        uverbs_request call(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
        mlx5_ib_alloc_ucontext_req_v2 request{};
        call.in(UVERBS_ATTR_UHW_IN, request).out<mlx5_ib_alloc_ucontext_resp>(UVERBS_ATTR_UHW_OUT);
        return call.run(program.open());
    };
    EXPECT_EQ(open(), EAGAIN);
    EXPECT_FALSE(program.host.writers.empty());
    change(change_kind::recover);
    EXPECT_EQ(alloc_pd(maker.fd), EIO);
    EXPECT_TRUE(program.host.writers.empty());
}

TEST(event_records, end_mark_is_found_behind_events_only)
{
    const event_route route{.channel = 3, .kind = static_cast<std::uint32_t>(event_format::async), .value = 1};
    const event_record event = format_event(route, event_code(prm::event_type::local_catastrophic));
    const event_record end   = format_event(route, channel_ends);
    ASSERT_EQ(end.length, 16u);
    std::vector<std::byte> both(event.bytes.begin(), event.bytes.begin() + 16);
    EXPECT_EQ(ends_behind(both, event_format::async), 16u);
    both.insert(both.end(), end.bytes.begin(), end.bytes.begin() + 16);
    EXPECT_EQ(ends_behind(both, event_format::async), 16u);
    EXPECT_EQ(ends_behind(std::span(both).subspan(16), event_format::async), 0u);
}

TEST(event_records, ports_have_an_event_for_each_of_their_changes)
{
    const event_route route{.channel = 3, .kind = static_cast<std::uint32_t>(event_format::async), .value = 1};
    const auto verbs = [&](prm::port_change change) {
        const event_record event = format_event(route, event_code(prm::event_type::port_state_change, change));
        std::int32_t type        = -1;
        std::memcpy(&type, event.bytes.data() + 8, sizeof(type));
        return event.length == 16 ? type : -1;
    };
    EXPECT_EQ(verbs(prm::port_change::active), 9);
    EXPECT_EQ(verbs(prm::port_change::down), 10);
    EXPECT_EQ(verbs(prm::port_change::initialized), 10);
    EXPECT_EQ(verbs(prm::port_change::lid), 11);
    EXPECT_EQ(verbs(prm::port_change::pkey), 12);
    EXPECT_EQ(verbs(prm::port_change::client_reregister), 17);
    EXPECT_EQ(verbs(prm::port_change::guid), 18);
    EXPECT_EQ(verbs(static_cast<prm::port_change>(2)), -1);
}

} // namespace
} // namespace ucxl::softhca::test
