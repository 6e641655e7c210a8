// Failing requests: how they are refused, and what each error does to both sides.
#include "connected_pair.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::event_type;

class refusals : public connected_pair
{
protected:
    // The request and its queue pair fail, and later WQEs are flushed.
    void expect_refused(const work_request& request, cqe_syndrome syndrome)
    {
        const auto failing = a.post(request);
        const auto behind  = a.post(write(0, 8).completion(prm::wqe_completion::on_error));
        a.run();
        const auto first = a_sends.poll();
        ASSERT_NO_FATAL_FAILURE(expect_error(first, syndrome));
        EXPECT_EQ(first->counter(), failing);
        const auto second = a_sends.poll();
        ASSERT_NO_FATAL_FAILURE(expect_error(second, cqe_syndrome::flushed));
        EXPECT_EQ(second->counter(), behind);
        EXPECT_FALSE(a_sends.poll());
        EXPECT_EQ(a.record().state, qp_state::error);
    }

    void expect_peer_unharmed()
    {
        EXPECT_EQ(b.record().state, qp_state::rts);
        EXPECT_TRUE(events(b).empty());
        EXPECT_FALSE(b_receives.poll());
    }

    void expect_peer_failed(const std::vector<event_type>& told)
    {
        EXPECT_EQ(b.record().state, qp_state::error);
        EXPECT_EQ(events(b), told);
    }
};

TEST_F(refusals, write_with_a_wrong_key)
{
    b.post_receive(into(0, 8));
    expect_refused(work_request(wqe_opcode::rdma_write)
                       .remote(address_of(target), target_key ^ 1)
                       .data(source_key, address_of(source), 8),
                   cqe_syndrome::remote_access);
    expect_peer_failed({event_type::wq_access_error});
    expect_error(b_receives.poll(), cqe_syndrome::flushed);
}

TEST_F(refusals, write_past_the_end_changes_nothing)
{
    expect_refused(work_request(wqe_opcode::rdma_write)
                       .remote(address_of(target) + target.size() - 4, target_key)
                       .data(source_key, address_of(source), 8),
                   cqe_syndrome::remote_access);
    expect_peer_failed({event_type::wq_access_error});
    EXPECT_EQ(target.back(), std::byte{0});
}

TEST_F(refusals, write_without_the_right)
{
    make.record(target_key).remote_write = false;
    expect_refused(write(0, 8), cqe_syndrome::remote_access);
    expect_peer_failed({event_type::wq_access_error});
}

TEST_F(refusals, key_of_another_protection_domain)
{
    make.record(target_key).pd = 8;
    expect_refused(write(0, 8), cqe_syndrome::remote_access);
}

TEST_F(refusals, operations_that_the_peer_does_not_allow)
{
    b.record().remote_write = false;
    expect_refused(write(0, 8), cqe_syndrome::remote_invalid_request);
    expect_peer_failed({event_type::wq_invalid_request});
}

TEST_F(refusals, reads_that_the_peer_does_not_allow)
{
    b.record().remote_read = false;
    expect_refused(work_request(wqe_opcode::rdma_read)
                       .remote(address_of(target), target_key)
                       .data(source_key, address_of(source), 8),
                   cqe_syndrome::remote_invalid_request);
    expect_peer_failed({event_type::wq_invalid_request});
}

TEST_F(refusals, own_memory_that_may_not_be_read)
{
    make.record(source_key).local_read = false;
    expect_refused(write(0, 8), cqe_syndrome::local_protection);
    expect_peer_unharmed();
}

TEST_F(refusals, own_memory_that_is_not_mapped)
{
    make.record(source_key).len += 4096;
    expect_refused(work_request(wqe_opcode::rdma_write)
                       .remote(address_of(target), target_key)
                       .data(source_key, address_of(source) + 8190, 8),
                   cqe_syndrome::local_protection);
    expect_peer_unharmed();
}

TEST_F(refusals, a_read_into_memory_that_may_not_be_written)
{
    make.record(source_key).local_write = false;
    expect_refused(work_request(wqe_opcode::rdma_read)
                       .remote(address_of(target), target_key)
                       .data(source_key, address_of(source), 8),
                   cqe_syndrome::local_protection);
    expect_peer_unharmed();
}

TEST_F(refusals, send_longer_than_the_receive)
{
    const auto index = b.post_receive(into(0, 8));
    b.post_receive(into(0, 8));
    expect_refused(send(9), cqe_syndrome::remote_invalid_request);
    const auto received = b_receives.poll();
    ASSERT_NO_FATAL_FAILURE(expect_error(received, cqe_syndrome::local_length));
    EXPECT_EQ(received->counter(), index);
    expect_error(b_receives.poll(), cqe_syndrome::flushed);
    expect_peer_failed({});
    EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(refusals, a_receive_list_ends_at_its_mark)
{
    b.post_receive(std::array{into(0, 8), receive_segment{.key = 0x100}, into(100, 100)});
    expect_refused(send(9), cqe_syndrome::remote_invalid_request);
    expect_error(b_receives.poll(), cqe_syndrome::local_length);
}

TEST_F(refusals, receive_memory_that_may_not_be_written)
{
    make.record(target_key).local_write = false;
    b.post_receive(into(0, 100));
    expect_refused(send(9), cqe_syndrome::remote_operation);
    expect_error(b_receives.poll(), cqe_syndrome::local_protection);
    expect_peer_failed({});
}

TEST_F(refusals, send_from_bad_memory_leaves_the_receive_to_the_next)
{
    b.post_receive(into(0, 100));
    expect_refused(work_request(wqe_opcode::send).data(1, 2, 3), cqe_syndrome::local_protection);
    EXPECT_EQ(b.record().receive.consumed, 0);
    expect_peer_unharmed();
}

TEST_F(refusals, invalidation_of_a_key_that_does_not_allow_it)
{
    b.post_receive(into(0, 100));
    expect_refused(work_request(wqe_opcode::send_invalidate).imm(target_key).data(source_key, address_of(source), 4),
                   cqe_syndrome::remote_access);
    expect_peer_failed({event_type::wq_access_error});
}

TEST_F(refusals, unknown_opcodes)
{
    expect_refused(work_request(static_cast<wqe_opcode>(0x3f)), cqe_syndrome::local_qp_operation);
    expect_peer_unharmed();
}

TEST_F(refusals, opcodes_that_are_not_modelled)
{
    expect_refused(work_request(wqe_opcode::mmo), cqe_syndrome::local_qp_operation);
}

TEST_F(refusals, requests_longer_than_what_was_posted)
{
    auto bytes = write(0, 8).bytes();
    (void)(*prm::view<prm::wqe_control_segment>::over(bytes)).set(prm::wqe_control_segment::ds, 5);
    a.post(bytes); // one block; the second would have only empty segments
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_qp_operation);
    EXPECT_EQ(target[0], std::byte{0});
}

TEST_F(refusals, requests_of_no_length)
{
    auto bytes = write(0, 8).bytes();
    (void)(*prm::view<prm::wqe_control_segment>::over(bytes)).set(prm::wqe_control_segment::ds, 0);
    a.post(bytes);
    const auto behind = a.post(write(0, 8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_qp_operation);
    const auto flushed = a_sends.poll();
    ASSERT_NO_FATAL_FAILURE(expect_error(flushed, cqe_syndrome::flushed));
    EXPECT_EQ(flushed->counter(), behind);
}

TEST_F(refusals, a_message_longer_than_the_queue_pair_takes)
{
    (void)prm::view<prm::qpc>(std::as_writable_bytes(std::span(a.record().context))).set(prm::qpc::log_msg_max, 5);
    expect_refused(write(0, 33), cqe_syndrome::local_length);
    expect_peer_unharmed();
}

TEST_F(refusals, a_peer_whose_completion_queue_is_full_fails)
{
    made_cq tiny          = kit.completion_queue(far, 0);
    b.record().receive_cq = tiny.number;
    b.post_receive(into(0, 8));
    b.post_receive(into(0, 8));
    a.post(send(1));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    expect_refused(send(1), cqe_syndrome::remote_operation);
    expect_peer_failed({event_type::wq_catastrophic_error});
    EXPECT_EQ(events(101, tiny.number), std::vector{event_type::cq_error});
}

TEST_F(refusals, a_peer_whose_receive_queue_is_not_mapped_fails)
{
    b.record().buffer.address = 0x1000;
    expect_refused(send(1), cqe_syndrome::remote_operation);
    expect_peer_failed({event_type::wq_catastrophic_error});
}

TEST_F(refusals, a_send_queue_that_is_not_mapped_fails_its_queue_pair)
{
    a.post(write(0, 8));
    a.record().buffer.address = 0x1000;
    a.run();
    EXPECT_EQ(a.record().state, qp_state::error);
    EXPECT_EQ(events(a), std::vector{event_type::wq_catastrophic_error});
}

TEST_F(refusals, a_queue_pair_that_refuses_itself_completes_before_it_flushes)
{
    queue_kit::connect(a, a);
    a.record().expected_psn = a.record().send.psn;
    a.record().remote_write = false;
    a.post_receive({source_key, address_of(source), 8});
    const auto failing = a.post(write(0, 8));
    const auto behind  = a.post(write(0, 8));
    a.run();
    const auto first = a_sends.poll();
    ASSERT_NO_FATAL_FAILURE(expect_error(first, cqe_syndrome::remote_invalid_request));
    EXPECT_EQ(first->counter(), failing);
    const auto second = a_sends.poll();
    ASSERT_NO_FATAL_FAILURE(expect_error(second, cqe_syndrome::flushed));
    EXPECT_EQ(second->counter(), behind);
    EXPECT_FALSE(a_sends.poll());
    expect_error(a_receives.poll(), cqe_syndrome::flushed);
}

class unreliable : public connected_pair
{
protected:
    unreliable() : connected_pair(qp_service::uc) {}

    void expect_dropped(const work_request& request)
    {
        a.post(request);
        a.run();
        EXPECT_FALSE(only(a_sends).failed());
        EXPECT_EQ(a.record().state, qp_state::rts);
        EXPECT_EQ(b.record().state, qp_state::rts);
        EXPECT_TRUE(events(b).empty());
        EXPECT_FALSE(b_receives.poll());
    }
};

TEST_F(unreliable, writes_and_sends_arrive)
{
    b.post_receive(into(100, 100));
    a.post(write(0, 8));
    a.post(send(7));
    a.run();
    EXPECT_EQ(a_sends.poll_all().size(), 2u);
    EXPECT_TRUE(arrived(0, 0, 8));
    EXPECT_TRUE(arrived(100, 0, 7));
    EXPECT_EQ(only(b_receives).length(), 7u);
}

TEST_F(unreliable, what_the_peer_would_refuse_is_dropped)
{
    expect_dropped(work_request(wqe_opcode::rdma_write)
                       .remote(address_of(target), target_key ^ 1)
                       .data(source_key, address_of(source), 8)
                       .signaled());
    b.record().remote_write = false;
    expect_dropped(write(0, 8));
}

TEST_F(unreliable, a_send_that_finds_no_receive_is_dropped)
{
    expect_dropped(send(8));
}

TEST_F(unreliable, a_send_too_long_leaves_the_receive)
{
    b.post_receive(into(0, 4));
    expect_dropped(send(8));
    EXPECT_EQ(b.record().receive.consumed, 0);
}

TEST_F(unreliable, a_lost_message_ends_nothing)
{
    b.record().state = qp_state::init;
    a.post(write(0, 8));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    b.record().state = qp_state::rts;
    a.post(write(0, 8));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(unreliable, own_mistakes_stop_sending_but_not_receiving)
{
    a.post(work_request(wqe_opcode::rdma_write).remote(0, 0).data(0, 0, 8));
    a.post(write(0, 8));
    a_receives.poll();
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_protection);
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
    EXPECT_EQ(a.record().state, qp_state::send_error);
    const std::span<std::byte> here = near.allocate(64);
    a.post_receive({make.direct(near.id(), here), address_of(here), 64});
    b.post(work_request(wqe_opcode::send).data(target_key, address_of(target), 8).signaled());
    b.run();
    EXPECT_EQ(only(a_receives).length(), 8u);
    a.post(write(0, 8));
    EXPECT_TRUE(a.run());
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
}

TEST_F(unreliable, reads_are_not_carried)
{
    a.post(work_request(wqe_opcode::rdma_read)
               .remote(address_of(target), target_key)
               .data(source_key, address_of(source), 8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::local_qp_operation);
}

} // namespace

} // namespace ucxl::softhca::test
