// Datagrams: addresses, route headers, keys, and what is silently dropped.
#include "connected_pair.h"

#include "prm/bits.h"

namespace ucxl::softhca::test
{

namespace
{

constexpr std::uint32_t qkey = 0x11111111;
constexpr std::size_t grh    = 40;

class datagrams : public connected_pair
{
protected:
    datagrams() : connected_pair(qp_service::ud) {}

    work_request to_b() { return work_request(wqe_opcode::send).address(b.lid(), b.number, qkey).signaled(); }

    work_request& with_data(work_request& request, std::uint32_t length = 16)
    {
        return request.data(source_key, address_of(source), length);
    }

    void expect_dropped(work_request request)
    {
        a.post(with_data(request));
        a.run();
        EXPECT_FALSE(only(a_sends).failed());
        EXPECT_FALSE(b_receives.poll());
        EXPECT_EQ(a.record().state, qp_state::rts);
        EXPECT_EQ(b.record().state, qp_state::rts);
    }
};

TEST_F(datagrams, data_arrives_behind_room_for_a_route_header)
{
    const auto index = b.post_receive(into(0, 100));
    auto request     = to_b();
    a.post(with_data(request));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    const polled received = only(b_receives);
    const auto entry      = *received.bytes;
    EXPECT_EQ(received.opcode(), cqe_opcode::responder_send);
    EXPECT_EQ(received.length(), 16 + grh);
    EXPECT_EQ(received.counter(), index);
    EXPECT_EQ(entry.get(prm::cqe64::slid), a.lid());
    EXPECT_EQ(entry.get(prm::cqe64::src_qpn), a.number);
    EXPECT_EQ(entry.get(prm::cqe64::grh), 0);
    EXPECT_TRUE(arrived(grh, 0, 16));
    EXPECT_TRUE(std::ranges::all_of(target.first(grh), [](std::byte one) { return one == std::byte{0}; }));
}

TEST_F(datagrams, compact_addresses_reach_the_same_place)
{
    b.post_receive(into(0, 100));
    work_request request(wqe_opcode::send);
    request.compact_address(b.lid(), b.number, qkey).signaled();
    a.post(with_data(request));
    a.run();
    EXPECT_EQ(only(b_receives).length(), 16 + grh);
}

TEST_F(datagrams, a_route_header_is_written_in_front)
{
    std::array<std::byte, 16> gid{};
    gid.fill(std::byte{0x77});
    b.post_receive(std::array{into(1000, 10), into(0, 100)});
    work_request request(wqe_opcode::send_imm);
    request.address(b.lid(), b.number, qkey, gid).imm(5).signaled();
    a.post(with_data(request, 17));
    a.run();
    const polled received = only(b_receives);
    EXPECT_EQ(received.opcode(), cqe_opcode::responder_send_imm);
    EXPECT_EQ(received.imm(), 5u);
    EXPECT_EQ((*received.bytes).get(prm::cqe64::grh), 1);
    std::array<std::byte, grh> header;
    std::memcpy(header.data(), target.data() + 1000, 10);
    std::memcpy(header.data() + 10, target.data(), 30);
    EXPECT_EQ(prm::detail::load_big_endian<std::uint32_t>(header.data()), 0x60312345u);
    EXPECT_EQ(prm::detail::load_big_endian<std::uint16_t>(header.data() + 4), 12 + 8 + 4 + 20 + 4);
    EXPECT_EQ(header[6], std::byte{0x1b});
    EXPECT_EQ(header[7], std::byte{64});
    EXPECT_EQ(prm::detail::load_big_endian<std::uint64_t>(header.data() + 8), 0xfe80000000000000u);
    EXPECT_EQ(prm::detail::load_big_endian<std::uint64_t>(header.data() + 16),
              machine.memory().function_table[0].port_guid);
    EXPECT_EQ(std::memcmp(header.data() + 24, gid.data(), 16), 0);
    EXPECT_TRUE(arrived(30, 0, 17));
}

TEST_F(datagrams, one_queue_pair_reaches_itself)
{
    const std::span<std::byte> here = near.allocate(100);
    a.post_receive({make.direct(near.id(), here), address_of(here), 100});
    work_request request(wqe_opcode::send);
    request.address(a.lid(), a.number, qkey).signaled();
    a.post(with_data(request));
    a.run();
    EXPECT_EQ(only(a_receives).length(), 16 + grh);
    EXPECT_EQ(std::memcmp(here.data() + grh, source.data(), 16), 0);
}

TEST_F(datagrams, nobody_there)
{
    expect_dropped(work_request(wqe_opcode::send).address(b.lid(), 4711, qkey).signaled());
    expect_dropped(work_request(wqe_opcode::send).address(77, b.number, qkey).signaled());
    expect_dropped(work_request(wqe_opcode::send).address(0xc001, 0xffffff, qkey).signaled());
}

TEST_F(datagrams, a_wrong_key)
{
    b.post_receive(into(0, 100));
    expect_dropped(work_request(wqe_opcode::send).address(b.lid(), b.number, qkey + 1).signaled());
}

TEST_F(datagrams, a_privileged_key_stands_for_the_senders_own)
{
    b.post_receive(into(0, 100));
    work_request request(wqe_opcode::send);
    request.address(b.lid(), b.number, 0x80000000).signaled();
    a.post(with_data(request));
    a.run();
    EXPECT_EQ(only(b_receives).length(), 16 + grh);
}

TEST_F(datagrams, no_receive)
{
    expect_dropped(to_b());
}

TEST_F(datagrams, a_receive_too_short_stays)
{
    b.post_receive(into(0, 16 + grh - 1));
    expect_dropped(to_b());
    EXPECT_EQ(b.record().receive.consumed, 0);
}

TEST_F(datagrams, a_receiver_not_ready)
{
    b.post_receive(into(0, 100));
    b.record().state = qp_state::init;
    auto request     = to_b();
    a.post(with_data(request));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_FALSE(b_receives.poll());
}

TEST_F(datagrams, a_dead_process)
{
    b.post_receive(into(0, 100));
    far.kill();
    auto request = to_b();
    a.post(with_data(request));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
}

TEST_F(datagrams, longer_than_a_packet)
{
    auto request = to_b();
    a.post(with_data(request, 1025));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_length);
    EXPECT_EQ(a.record().state, qp_state::send_error);
}

TEST_F(datagrams, as_long_as_a_packet)
{
    b.post_receive(into(0, 1024 + grh));
    auto request = to_b();
    a.post(with_data(request, 1024));
    a.run();
    EXPECT_EQ(only(b_receives).length(), 1024 + grh);
    EXPECT_TRUE(arrived(grh, 0, 1024));
}

TEST_F(datagrams, own_memory_is_checked_even_when_nobody_listens)
{
    make.record(source_key).local_read = false;
    auto request                       = to_b();
    a.post(with_data(request));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_protection);
}

TEST_F(datagrams, receive_memory_that_may_not_be_written_fails_the_receiver_only)
{
    make.record(target_key).local_write = false;
    b.post_receive(into(0, 100));
    b.post_receive(into(0, 100));
    auto request = to_b();
    a.post(with_data(request));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(a.record().state, qp_state::rts);
    expect_error(b_receives.poll(), cqe_syndrome::local_protection);
    expect_error(b_receives.poll(), cqe_syndrome::flushed);
    EXPECT_EQ(b.record().state, qp_state::error);
}

TEST_F(datagrams, writes_are_not_carried)
{
    a.post(work_request(wqe_opcode::rdma_write).address(b.lid(), b.number, qkey).remote(0, 0));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_qp_operation);
}

TEST_F(datagrams, short_data_stays_out_of_completions)
{
    b.scatter(prm::scatter_to_cqe::none, prm::scatter_to_cqe::up_to_32b);
    b.post_receive(into(0, 100));
    auto request = to_b();
    a.post(with_data(request, 4));
    a.run();
    EXPECT_EQ((*only(b_receives).bytes).get(prm::cqe64::format), prm::cqe_format::no_inline);
    EXPECT_TRUE(arrived(grh, 0, 4));
}

} // namespace

} // namespace ucxl::softhca::test
