// Dynamic connections: addresses and access keys of targets, what they answer, and what an error leaves behind.
#include "dynamic_pair.h"

#include "prm/bits.h"
#include "prm/qp.h"
#include "softhca/core/arena/record_table.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::event_type;

class dynamic_connections : public dynamic_pair
{
protected:
    dynamic_connections() : dynamic_pair({.functions_per_device = 2}) {}

    std::array<std::byte, 16> gid_of(const made_target& dct)
    {
        std::array<std::byte, 16> gid;
        prm::detail::store_big_endian(gid.data(), std::uint64_t{0xfe80000000000000});
        prm::detail::store_big_endian(gid.data() + 8, machine.memory().function_table[dct.lid() - 1U].port_guid);
        return gid;
    }
};

TEST_F(dynamic_connections, a_message_names_the_target_and_the_initiator)
{
    queue.post(into(0, 100));
    a.post(to_target(wqe_opcode::send_imm).imm(77).data(source_key, address_of(source), 33));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    const polled got = only(arrivals);
    EXPECT_EQ(got.opcode(), cqe_opcode::responder_send_imm);
    EXPECT_EQ(got.qpn(), there.number);
    EXPECT_EQ((*got.bytes).get(prm::cqe64::srqn_uidx), there.record().user_index);
    EXPECT_EQ((*got.bytes).get(prm::cqe64::src_qpn), a.number);
    EXPECT_EQ((*got.bytes).get(prm::cqe64::slid), a.lid());
    EXPECT_EQ(got.imm(), 77u);
    EXPECT_EQ(got.length(), 33u);
    EXPECT_TRUE(arrived(0, 0, 33));
}

TEST_F(dynamic_connections, writes_reads_and_atomics)
{
    queue.post(into(4000, 100));
    a.post(written(100));
    a.post(to_target(wqe_opcode::rdma_write_imm)
               .imm(5)
               .remote(address_of(target) + 200, target_key)
               .data(source_key, address_of(source) + 200, 10));
    a.post(to_target(wqe_opcode::rdma_read)
               .remote(address_of(target), target_key)
               .data(source_key, address_of(source) + 1000, 100));
    a.post(to_target(wqe_opcode::atomic_fa)
               .remote(address_of(target) + 800, target_key)
               .fetch_add(3)
               .data(source_key, address_of(source) + 2000, 8));
    a.run();
    const auto done = a_sends.poll_all();
    ASSERT_EQ(done.size(), 4u);
    EXPECT_TRUE(std::ranges::none_of(done, &polled::failed));
    EXPECT_EQ(only(arrivals).opcode(), cqe_opcode::responder_write_imm);
    EXPECT_TRUE(arrived(0, 0, 100));
    EXPECT_TRUE(arrived(200, 200, 10));
    EXPECT_EQ(std::memcmp(source.data() + 1000, target.data(), 100), 0);
    EXPECT_EQ(target[800], std::byte{3});
}

TEST_F(dynamic_connections, one_initiator_reaches_targets_of_several_processes)
{
    test_process& third  = machine.start();
    const auto memory    = third.allocate(64);
    made_srq third_queue = kit.shared_receive_queue(third);
    made_cq third_cq     = kit.completion_queue(third);
    const auto other     = kit.target(third, third_cq, third_queue, dc_access_key + 1);
    third_queue.post({make.direct(third.id(), memory), address_of(memory), 64});
    queue.post(into(0, 100));
    a.post(sent(8));
    a.post(work_request(wqe_opcode::send)
               .target(other.lid(), other.number, dc_access_key + 1)
               .data(source_key, address_of(source) + 8, 8)
               .signaled());
    a.post(written(8));
    a.run();
    EXPECT_EQ(a_sends.poll_all().size(), 3u);
    EXPECT_EQ(only(arrivals).length(), 8u);
    EXPECT_EQ(only(third_cq).qpn(), other.number);
    EXPECT_EQ(std::memcmp(memory.data(), source.data() + 8, 8), 0);
}

TEST_F(dynamic_connections, one_target_answers_several_initiators)
{
    // A second initiator, of the target's own process.
    for (int i = 0; i < 4; i++) {
        queue.post(into(100U * i, 100));
        made_qp& from = i % 2 == 0 ? a : b;
        from.post(i % 2 == 0 ? sent(8) : to_target(wqe_opcode::send).inline_data(source.first(8)));
        from.run();
        const polled got = only(arrivals);
        EXPECT_FALSE(got.failed());
        EXPECT_EQ((*got.bytes).get(prm::cqe64::src_qpn), from.number);
        EXPECT_TRUE(arrived(100U * i, 0, 8));
    }
    EXPECT_TRUE(events(there).empty()) << "no queue pair was established";
}

TEST_F(dynamic_connections, a_wrong_access_key_gets_no_answer_and_is_counted)
{
    queue.post(into(0, 100));
    there.record().dc.armed = true;
    expect_no_answer(work_request(wqe_opcode::send)
                         .target(there.lid(), there.number, dc_access_key ^ 1)
                         .data(source_key, address_of(source), 8)
                         .signaled());
    EXPECT_EQ(there.record().dc.violations, 4u);
    EXPECT_EQ(events(there), std::vector{event_type::dct_key_violation}) << "once, because it was armed once";
    EXPECT_FALSE(arrivals.poll());
}

TEST_F(dynamic_connections, both_halves_of_the_access_key_count)
{
    expect_no_answer(work_request(wqe_opcode::rdma_write)
                         .target(there.lid(), there.number, dc_access_key ^ (std::uint64_t{1} << 63))
                         .remote(address_of(target), target_key)
                         .data(source_key, address_of(source), 8)
                         .signaled());
    EXPECT_TRUE(events(there).empty()) << "not armed";
    EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(dynamic_connections, a_number_that_is_no_target)
{
    expect_no_answer(work_request(wqe_opcode::send).target(there.lid(), 0x777, dc_access_key).signaled());
}

TEST_F(dynamic_connections, an_initiator_is_no_target)
{
    b.record().dc.access_key = dc_access_key;
    expect_no_answer(work_request(wqe_opcode::send).target(b.lid(), b.number, dc_access_key).signaled());
}

TEST_F(dynamic_connections, a_target_is_not_at_another_port)
{
    queue.post(into(0, 100));
    expect_no_answer(work_request(wqe_opcode::send)
                         .target(static_cast<std::uint16_t>(there.lid() + 1), there.number, dc_access_key)
                         .signaled());
}

TEST_F(dynamic_connections, a_target_of_another_function)
{
    const auto other = kit.target(far, arrivals, queue, dc_access_key, 1);
    EXPECT_NE(other.lid(), a.lid());
    make.function                 = 1;
    const std::uint32_t key_there = make.direct(far.id(), target);
    const auto write_with         = [&](std::uint32_t key) {
        a.post(work_request(wqe_opcode::rdma_write)
                           .target(other.lid(), other.number, dc_access_key)
                           .remote(address_of(target), key)
                           .data(source_key, address_of(source), 8)
                           .signaled());
        a.run();
    };
    write_with(key_there);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
    write_with(target_key);
    expect_error(a_sends.poll(), cqe_syndrome::remote_access);
    EXPECT_EQ(other.record().state, qp_state::rtr) << "that key is of the first function";
}

TEST_F(dynamic_connections, other_services_do_not_reach_a_target)
{
    made_qp c = kit.queue_pair(near, {.send_cq = &a_sends, .receive_cq = &a_receives, .service = qp_service::rc});
    c.record().path.remote_qpn = there.number;
    c.record().path.remote_lid = there.lid();
    c.record().retry_count     = 0;
    queue.post(into(0, 100));
    c.post(send(8));
    c.run();
    machine.advance(std::uint64_t{4096} << 14);
    c.run();
    expect_error(a_sends.poll(), cqe_syndrome::transport_retry_exceeded);
    made_qp d = kit.queue_pair(near, {.send_cq = &a_sends, .receive_cq = &a_receives, .service = qp_service::ud});
    d.post(
        work_request(wqe_opcode::send).address(there.lid(), there.number, 0).inline_data(source.first(4)).signaled());
    d.run();
    EXPECT_FALSE(only(a_sends).failed()) << "a datagram is lost without a word";
    EXPECT_FALSE(arrivals.poll());
}

TEST_F(dynamic_connections, a_route_header_with_the_ports_gid)
{
    queue.post(into(0, 100));
    a.post(work_request(wqe_opcode::send)
               .target(there.lid(), there.number, dc_access_key, gid_of(there))
               .data(source_key, address_of(source), 8)
               .signaled());
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(only(arrivals).length(), 8u) << "no room for the header is left";
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(dynamic_connections, a_route_header_with_another_gid_gets_no_answer)
{
    auto gid = gid_of(there);
    gid[15] ^= std::byte{1};
    queue.post(into(0, 100));
    expect_no_answer(work_request(wqe_opcode::send).target(there.lid(), there.number, dc_access_key, gid).signaled());
}

TEST_F(dynamic_connections, an_empty_receive_queue_is_tried_again_after_the_targets_time)
{
    a.post(sent(8));
    a.run();
    EXPECT_FALSE(a_sends.poll());
    queue.post(into(0, 100));
    machine.advance(639'999); // timer 12 of the initiator; that of the target is 14, 1.28 ms
    a.run();
    EXPECT_FALSE(a_sends.poll());
    machine.advance(640'002);
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(dynamic_connections, an_empty_receive_queue_ends_the_retries)
{
    a.record().rnr_retry = 0;
    a.post(sent(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::rnr_retry_exceeded);
    EXPECT_EQ(a.record().state, qp_state::error);
    queue.post(into(0, 100));
    b.post(to_target(wqe_opcode::send).inline_data(source.first(8)));
    b.run();
    EXPECT_EQ(only(arrivals).length(), 8u) << "the target is as before";
}

TEST_F(dynamic_connections, a_refused_request_fails_the_initiator_only)
{
    queue.post(into(0, 100));
    a.post(to_target(wqe_opcode::rdma_write)
               .remote(address_of(target) + target.size(), target_key)
               .data(source_key, address_of(source), 8));
    a.post(sent(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::remote_access);
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
    EXPECT_EQ(a.record().state, qp_state::error);
    EXPECT_EQ(there.record().state, qp_state::rtr);
    EXPECT_EQ(events(there), std::vector{event_type::wq_access_error});
    EXPECT_TRUE(events(a).empty());
    b.post(to_target(wqe_opcode::send).inline_data(source.first(8)));
    b.run();
    EXPECT_FALSE(only(arrivals).failed());
}

TEST_F(dynamic_connections, rights_of_the_target)
{
    there.record().remote_write = false;
    a.post(written(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::remote_invalid_request);
    EXPECT_EQ(events(there), std::vector{event_type::wq_invalid_request});
    EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(dynamic_connections, a_receive_too_short_ends_with_an_error_at_both_ends)
{
    queue.post(into(0, 7));
    queue.post(into(0, 100));
    a.post(sent(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::remote_invalid_request);
    const polled got = only(arrivals);
    EXPECT_TRUE(got.receive_failed());
    EXPECT_EQ(got.syndrome(), cqe_syndrome::local_length);
    EXPECT_EQ(got.qpn(), there.number);
    b.post(to_target(wqe_opcode::send).inline_data(source.first(8)));
    b.run();
    EXPECT_FALSE(only(arrivals).failed()) << "the next receive is for the next message";
}

TEST_F(dynamic_connections, a_dead_process_does_not_answer)
{
    queue.post(into(0, 100));
    far.kill();
    expect_no_answer(sent(8));
}

TEST_F(dynamic_connections, a_drained_target_does_not_answer)
{
    there.record().state = qp_state::reset;
    queue.post(into(0, 100));
    expect_no_answer(sent(8));
}

TEST_F(dynamic_connections, a_target_that_goes_between_two_turns)
{
    constexpr std::size_t length = 3U << 20;
    const auto from              = near.allocate(length);
    const auto to                = far.allocate(length);
    std::ranges::fill(from, std::byte{0x5a});
    a.post(to_target(wqe_opcode::rdma_write)
               .remote(address_of(to), make.direct(far.id(), to))
               .data(make.direct(near.id(), from), address_of(from), length));
    a.run(1);
    EXPECT_EQ(a.record().send.progress.waiting, requester_wait::turn);
    retire(machine.memory().qps, there.number);
    for (int i = 0; i <= 4; i++) {
        a.run();
        machine.advance(std::uint64_t{4096} << 14);
    }
    expect_error(a_sends.poll(), cqe_syndrome::transport_retry_exceeded);
    EXPECT_EQ(to[length - 1], std::byte{0});
}

TEST_F(dynamic_connections, short_messages_go_to_long_entries_only)
{
    made_cq long_entries      = kit.completion_queue(far, 4, 128);
    there.record().receive_cq = long_entries.number;
    const auto context        = prm::view<prm::dctc>::over(std::as_writable_bytes(std::span(there.record().context)));
    for (const auto limit : {prm::scatter_to_cqe::up_to_64b, prm::scatter_to_cqe::up_to_32b}) {
        const bool whole = limit == prm::scatter_to_cqe::up_to_64b; // 32 bytes do not exist for targets
        (void)context->set(prm::dctc::cs_res, limit);
        std::ranges::fill(target, std::byte{0});
        queue.post(into(0, 100));
        a.post(sent(20));
        a.run();
        const polled got = only(long_entries);
        EXPECT_EQ((*got.bytes).get(prm::cqe64::format),
                  whole ? prm::cqe_format::inline_64 : prm::cqe_format::no_inline);
        EXPECT_EQ(std::memcmp(whole ? got.front.data() : target.data(), source.data(), 20), 0);
    }
}

TEST_F(dynamic_connections, read_data_goes_to_completions_of_initiators)
{
    a.scatter(prm::scatter_to_cqe::request_up_to_32b, prm::scatter_to_cqe::none);
    std::ranges::copy(source.first(16), target.begin());
    a.post(to_target(wqe_opcode::rdma_read)
               .remote(address_of(target), target_key)
               .data(source_key, address_of(source) + 100, 16));
    a.run();
    const polled got = only(a_sends);
    EXPECT_EQ((*got.bytes).get(prm::cqe64::format), prm::cqe_format::inline_32);
    EXPECT_EQ(std::memcmp(got.bytes.bytes.data(), target.data(), 16), 0);
}

TEST_F(dynamic_connections, a_request_without_an_address_is_an_error)
{
    a.post(work_request(wqe_opcode::send).signaled());
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_qp_operation);
    EXPECT_EQ(a.record().state, qp_state::error);
}

TEST_F(dynamic_connections, own_memory_is_checked_first)
{
    make.record(source_key).local_read = false;
    queue.post(into(0, 100));
    a.post(sent(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_protection);
    EXPECT_FALSE(arrivals.poll());
}

TEST_F(dynamic_connections, local_work_needs_no_address)
{
    const std::uint32_t own = make.list({klm(100, source_key, address_of(source))});
    make.record(own).umr_en = true;
    a.post(work_request(wqe_opcode::nop).signaled());
    a.post(work_request(wqe_opcode::local_invalidate).imm(own).signaled());
    a.run();
    const auto done = a_sends.poll_all();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_TRUE(std::ranges::none_of(done, &polled::failed));
    EXPECT_TRUE(make.record(own).free);
}

} // namespace

} // namespace ucxl::softhca::test
