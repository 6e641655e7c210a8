// Successful operations of connected queue pairs, and the CQEs of both sides byte by byte.
#include "connected_pair.h"
#include "prm/cq.h"

namespace ucxl::softhca::test
{

namespace
{

class messages : public connected_pair
{
};

TEST_F(messages, write_puts_bytes_into_the_peer_and_completes_at_the_sender_only)
{
    const auto index = a.post(write(64, 8));
    EXPECT_TRUE(a.run());
    EXPECT_TRUE(arrived(64, 64, 8));
    EXPECT_EQ(target[63], std::byte{0});
    EXPECT_EQ(target[72], std::byte{0});
    const polled done = only(a_sends);
    EXPECT_EQ(done.opcode(), cqe_opcode::requester);
    EXPECT_EQ(done.counter(), index);
    EXPECT_FALSE(b_receives.poll().has_value());
}

TEST_F(messages, completion_of_a_write_byte_by_byte)
{
    a.post(write(0, 8));
    a.post(write(0, 8));
    a.run();
    a_sends.poll();
    const polled done = only(a_sends);
    std::array<std::byte, 64> expected{};
    const std::uint32_t index = a.record().user_index;
    expected[33]              = static_cast<std::byte>(index >> 16);
    expected[34]              = static_cast<std::byte>(index >> 8);
    expected[35]              = static_cast<std::byte>(index);
    for (unsigned i = 0; i < 8; i++) {
        expected[48 + i] = static_cast<std::byte>(machine.time_ns >> (56 - 8 * i));
    }
    expected[56] = std::byte{0x08};
    expected[57] = static_cast<std::byte>(a.number >> 16);
    expected[58] = static_cast<std::byte>(a.number >> 8);
    expected[59] = static_cast<std::byte>(a.number);
    expected[61] = std::byte{1}; // second block
    EXPECT_EQ(done.bytes.bytes, expected);
}

TEST_F(messages, unsignaled_requests_do_not_complete)
{
    a.post(write(0, 8).completion(prm::wqe_completion::on_error));
    a.post(write(8, 8).completion(prm::wqe_completion::on_first_error));
    const auto last = a.post(write(16, 8));
    a.run();
    EXPECT_TRUE(arrived(0, 0, 24));
    EXPECT_EQ(only(a_sends).counter(), last);
}

TEST_F(messages, inline_data_and_lists_go_one_after_the_other)
{
    const std::array first{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
    a.post(work_request(wqe_opcode::rdma_write)
               .remote(address_of(target), target_key)
               .inline_data(first)
               .data(source_key, address_of(source) + 100, 10)
               .data(source_key, address_of(source) + 50, 20)
               .signaled());
    a.run();
    EXPECT_EQ(std::memcmp(target.data(), first.data(), 5), 0);
    EXPECT_TRUE(arrived(5, 100, 10));
    EXPECT_TRUE(arrived(15, 50, 20));
    EXPECT_FALSE(only(a_sends).failed());
}

TEST_F(messages, read_gathers_from_the_peer_into_a_list)
{
    std::ranges::copy(source, target.begin());
    std::ranges::fill(source, std::byte{0});
    a.post(work_request(wqe_opcode::rdma_read)
               .remote(address_of(target) + 10, target_key)
               .data(source_key, address_of(source) + 1000, 3)
               .data(source_key, address_of(source) + 2000, 61)
               .signaled());
    a.run();
    const polled done = only(a_sends);
    EXPECT_EQ(done.opcode(), cqe_opcode::requester);
    EXPECT_EQ(done.length(), 64u);
    EXPECT_TRUE(arrived(10, 1000, 3));
    EXPECT_TRUE(arrived(13, 2000, 61));
}

TEST_F(messages, send_scatters_into_the_receive_list)
{
    const receive_segment parts[]{into(0, 10), into(100, 3), into(200, 4096)};
    const auto index = b.post_receive(parts);
    a.post(send(50));
    a.run();
    EXPECT_TRUE(arrived(0, 0, 10));
    EXPECT_TRUE(arrived(100, 10, 3));
    EXPECT_TRUE(arrived(200, 13, 37));
    EXPECT_EQ(target[237], std::byte{0});
    EXPECT_FALSE(only(a_sends).failed());
    const polled received = only(b_receives);
    EXPECT_EQ(received.opcode(), cqe_opcode::responder_send);
    EXPECT_EQ(received.counter(), index);
    EXPECT_EQ(received.length(), 50u);
    EXPECT_EQ(received.qpn(), b.number);
    const auto entry = *received.bytes;
    EXPECT_EQ(entry.get(prm::cqe64::srqn_uidx), b.record().user_index);
    EXPECT_EQ(entry.get(prm::cqe64::src_qpn), a.number);
    EXPECT_EQ(entry.get(prm::cqe64::slid), a.lid());
}

TEST_F(messages, receive_segments_that_are_not_reached_are_not_looked_at)
{
    const receive_segment parts[]{into(0, 10), {0xdeadbeef, 0, 4096}};
    b.post_receive(parts);
    a.post(send(10));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_FALSE(only(b_receives).failed());
}

TEST_F(messages, immediate_values_arrive_with_sends_and_writes)
{
    b.post_receive(into(0, 100));
    b.post_receive(receive_segment{});
    a.post(work_request(wqe_opcode::send_imm).imm(0x01020304).data(source_key, address_of(source), 4).solicited());
    a.post(work_request(wqe_opcode::rdma_write_imm)
               .imm(0xa0b0c0d0)
               .remote(address_of(target) + 500, target_key)
               .data(source_key, address_of(source), 44));
    a.run();
    const auto sent = b_receives.poll();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->opcode(), cqe_opcode::responder_send_imm);
    EXPECT_EQ(sent->imm(), 0x01020304u);
    EXPECT_TRUE((*sent->bytes).get(prm::cqe64::solicited));
    const auto written = b_receives.poll();
    ASSERT_TRUE(written);
    EXPECT_EQ(written->opcode(), cqe_opcode::responder_write_imm);
    EXPECT_EQ(written->imm(), 0xa0b0c0d0u);
    EXPECT_EQ(written->length(), 44u);
    EXPECT_EQ(written->counter(), 1u);
    EXPECT_TRUE(arrived(500, 0, 44));
}

TEST_F(messages, a_message_of_nothing_needs_no_key)
{
    b.post_receive(receive_segment{});
    a.post(work_request(wqe_opcode::rdma_write).remote(0, 0).signaled());
    a.post(work_request(wqe_opcode::rdma_read).remote(0, 0).signaled());
    a.post(work_request(wqe_opcode::send).signaled());
    a.run();
    EXPECT_EQ(a_sends.poll_all().size(), 3u);
    EXPECT_EQ(a.record().state, qp_state::rts);
    EXPECT_EQ(only(b_receives).length(), 0u);
}

TEST_F(messages, nop_completes)
{
    const auto index = a.post(work_request(wqe_opcode::nop).signaled());
    a.run();
    const polled done = only(a_sends);
    EXPECT_FALSE(done.failed());
    EXPECT_EQ(done.counter(), index);
    EXPECT_EQ((*done.bytes).get(prm::cqe64::sop_opcode), wqe_opcode::nop);
}

TEST_F(messages, send_with_invalidation_frees_the_key)
{
    const std::uint32_t window            = make.list({klm(64, target_key, address_of(target))});
    make.record(window).remote_invalidate = true;
    b.post_receive(into(0, 100));
    a.post(work_request(wqe_opcode::send_invalidate).imm(window).data(source_key, address_of(source), 4).signaled());
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    const polled received = only(b_receives);
    EXPECT_EQ(received.opcode(), cqe_opcode::responder_send_inv);
    EXPECT_EQ(received.imm(), window);
    EXPECT_TRUE(make.record(window).free);
}

TEST_F(messages, requests_longer_than_a_block_wrap_at_the_end_of_the_ring)
{
    // Three blocks each in a ring of sixteen: every start position occurs, and counters exceed 16 bits.
    for (unsigned i = 0; i < 70'000 / 3; i++) {
        const std::uint64_t offset = i % 4000;
        std::array<std::byte, 130> data{};
        data.fill(static_cast<std::byte>(i));
        const auto index = a.post(work_request(wqe_opcode::rdma_write)
                                      .remote(address_of(target) + offset, target_key)
                                      .inline_data(data)
                                      .signaled());
        ASSERT_TRUE(a.run());
        const auto done = a_sends.poll();
        ASSERT_TRUE(done && !done->failed()) << i;
        ASSERT_EQ(done->counter(), index);
        ASSERT_EQ(std::memcmp(target.data() + offset, data.data(), data.size()), 0) << i;
    }
}

TEST_F(messages, receive_counters_pass_sixteen_bits)
{
    for (unsigned i = 0; i < 70'000; i++) {
        const auto index = b.post_receive(into(i % 100, 100));
        a.post(send(8));
        a.run();
        const auto received = b_receives.poll();
        ASSERT_TRUE(received && !received->failed()) << i;
        ASSERT_EQ(received->counter(), index);
        a_sends.poll();
    }
}

TEST_F(messages, a_queue_pair_may_be_its_own_peer)
{
    queue_kit::connect(a, a);
    a.record().expected_psn         = a.record().send.psn;
    const std::span<std::byte> into = near.allocate(64);
    const std::uint32_t key         = make.direct(near.id(), into);
    a.post_receive({key, address_of(into), 64});
    a.post(send(20));
    a.run();
    EXPECT_EQ(std::memcmp(into.data(), source.data(), 20), 0);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(only(a_receives).length(), 20u);
}

TEST_F(messages, only_as_many_as_the_budget_are_executed)
{
    for (int i = 0; i < 5; i++) {
        a.post(write(0, 8));
    }
    EXPECT_TRUE(a.run(2));
    EXPECT_EQ(a_sends.poll_all().size(), 2u);
    EXPECT_TRUE(a.run());
    EXPECT_EQ(a_sends.poll_all().size(), 3u);
    EXPECT_FALSE(a.run());
}

TEST_F(messages, short_data_goes_into_completions_that_are_asked_to_carry_it)
{
    a.scatter(prm::scatter_to_cqe::request_up_to_32b, prm::scatter_to_cqe::none);
    b.scatter(prm::scatter_to_cqe::none, prm::scatter_to_cqe::up_to_32b);
    b.post_receive(into(0, 100));
    a.post(send(32));
    a.run();
    const polled received = only(b_receives);
    EXPECT_EQ((*received.bytes).get(prm::cqe64::format), prm::cqe_format::inline_32);
    EXPECT_EQ(std::memcmp(received.bytes.bytes.data(), source.data(), 32), 0);
    EXPECT_EQ(received.length(), 32u);
    EXPECT_EQ(received.opcode(), cqe_opcode::responder_send);
    EXPECT_EQ(target[0], std::byte{0}) << "it is the poller who puts it there";
    a_sends.poll();

    b.post_receive(into(0, 100));
    a.post(send(33));
    a.run();
    EXPECT_EQ((*only(b_receives).bytes).get(prm::cqe64::format), prm::cqe_format::no_inline);
    EXPECT_TRUE(arrived(0, 0, 33));
    a_sends.poll();

    a.post(work_request(wqe_opcode::rdma_read)
               .remote(address_of(target), target_key)
               .data(source_key, address_of(source) + 4096, 8)
               .signaled());
    a.run();
    const polled read = only(a_sends);
    EXPECT_EQ((*read.bytes).get(prm::cqe64::format), prm::cqe_format::inline_32);
    EXPECT_EQ(std::memcmp(read.bytes.bytes.data(), target.data(), 8), 0);
    EXPECT_EQ(read.opcode(), cqe_opcode::requester);
}

TEST_F(messages, longer_data_goes_in_front_of_long_completions)
{
    made_cq wide          = kit.completion_queue(far, 4, 128);
    b.record().receive_cq = wide.number;
    b.scatter(prm::scatter_to_cqe::none, prm::scatter_to_cqe::up_to_64b);
    for (const std::uint32_t length : {5U, 33U, 64U}) {
        b.post_receive(into(0, 100));
        a.post(send(length));
        a.run();
        const polled received = only(wide);
        EXPECT_EQ((*received.bytes).get(prm::cqe64::format), prm::cqe_format::inline_64);
        EXPECT_EQ(std::memcmp(received.front.data(), source.data(), length), 0);
        EXPECT_EQ(received.length(), length);
        EXPECT_EQ((*received.bytes).get(prm::cqe64::src_qpn), a.number);
    }
}

TEST_F(messages, padded_completions_have_nothing_in_front)
{
    made_cq padded = kit.completion_queue(far, 4, 128);
    prm::view<prm::cqc>::over(std::as_writable_bytes(std::span(padded.record().context)))
        ->put<prm::cqe_size::bytes_128_padded>(prm::cqc::cqe_sz);
    b.record().receive_cq = padded.number;
    b.scatter(prm::scatter_to_cqe::none, prm::scatter_to_cqe::up_to_64b);
    for (const auto& [length, format] :
         {std::pair{32U, prm::cqe_format::inline_32}, {33U, prm::cqe_format::no_inline}}) {
        b.post_receive(into(0, 100));
        a.post(send(length));
        a.run();
        const polled received = only(padded);
        EXPECT_EQ((*received.bytes).get(prm::cqe64::format), format);
        EXPECT_EQ(std::ranges::count(received.front, std::byte{0}), 64);
    }
    EXPECT_TRUE(arrived(0, 0, 33));
}

TEST_F(messages, device_memory_is_a_target_like_any_other)
{
    const std::uint32_t memic = make.memic(128, 64);
    a.post(work_request(wqe_opcode::rdma_write).remote(8, memic).data(source_key, address_of(source), 16).signaled());
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(std::memcmp(machine.memory().memic[0].bytes.data() + 136, source.data(), 16), 0);
}

TEST_F(messages, layouts_are_sent_and_received_through_their_keys)
{
    const std::uint32_t column =
        make.list({repeat_header(8, 16, 1), repeat_entry(64, 8, target_key, address_of(target))});
    a.post(work_request(wqe_opcode::rdma_write).remote(0, column).data(source_key, address_of(source), 128).signaled());
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    for (std::size_t row = 0; row < 16; row++) {
        EXPECT_TRUE(arrived(row * 64, row * 8, 8)) << row;
    }
}

TEST_F(messages, what_was_done_is_counted_and_traced)
{
    near.trace_wanted = true;
    b.post_receive(into(0, 100));
    a.post(write(0, 8));
    a.post(send(8));
    a.run();
    const statistics& counts = machine.memory().counts;
    EXPECT_EQ(counts.wqes[0x08], 1u);
    EXPECT_EQ(counts.wqes[0x0a], 1u);
    EXPECT_EQ(counts.completions, 3u);
    EXPECT_NE(near.traced.find("rdma_write"), std::string::npos) << near.traced;
    EXPECT_NE(near.traced.find("responder_send"), std::string::npos) << near.traced;
    EXPECT_EQ(near.traced.back(), '\n');
}

TEST_F(messages, the_first_message_in_rtr_establishes_communication)
{
    b.record().state = qp_state::rtr;
    a.post(write(0, 8));
    a.post(write(0, 8));
    a.run();
    EXPECT_EQ(events(b), std::vector{prm::event_type::comm_established});
}

} // namespace

} // namespace ucxl::softhca::test
