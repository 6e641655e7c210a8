// Queue pairs in error: what is flushed, in which order, and WQEs that are posted later.
#include "connected_pair.h"

namespace ucxl::softhca::test
{

namespace
{

class flushes : public connected_pair
{
protected:
    // One CQ for both directions shows the order.
    flushes()
    {
        b.record().send_cq    = both.number;
        b.record().receive_cq = both.number;
    }

    void fail()
    {
        environment device = b.device();
        fail_queue_pair(device, b.number);
    }

    void expect_flushed(cqe_opcode opcode, std::uint16_t index)
    {
        const auto found = both.poll();
        ASSERT_TRUE(found) << "no completion for " << index;
        EXPECT_EQ(found->opcode(), opcode);
        EXPECT_EQ(found->syndrome(), cqe_syndrome::flushed);
        EXPECT_EQ(found->counter(), index);
    }

    work_request any_request()
    {
        return work_request(wqe_opcode::rdma_write).remote(0, 0).data(target_key, address_of(target), 8);
    }

    made_cq both = kit.completion_queue(far);
};

TEST_F(flushes, sends_first_then_receives_each_in_their_order)
{
    const auto r0 = b.post_receive(into(0, 8));
    const auto s0 = b.post(any_request().signaled());
    const auto r1 = b.post_receive(into(0, 8));
    std::array<std::byte, 200> data{};
    const auto s1 = b.post(work_request(wqe_opcode::rdma_write).remote(0, 0).inline_data(data));
    const auto s2 = b.post(any_request());
    fail();
    expect_flushed(cqe_opcode::requester_error, s0);
    expect_flushed(cqe_opcode::requester_error, s1);
    expect_flushed(cqe_opcode::requester_error, s2);
    expect_flushed(cqe_opcode::responder_error, r0);
    expect_flushed(cqe_opcode::responder_error, r1);
    EXPECT_FALSE(both.poll());
    EXPECT_EQ(s2, s1 + 4);
    EXPECT_EQ(machine.memory().counts.flushed_wqes, 5u);
}

TEST_F(flushes, what_is_posted_later_is_flushed_too)
{
    fail();
    EXPECT_FALSE(b.flush());
    const auto receive = b.post_receive(into(0, 8));
    EXPECT_TRUE(b.flush());
    expect_flushed(cqe_opcode::responder_error, receive);
    const auto sent = b.post(any_request());
    EXPECT_TRUE(b.run());
    expect_flushed(cqe_opcode::requester_error, sent);
    EXPECT_FALSE(both.poll());
}

TEST_F(flushes, requests_that_complete_on_the_first_error_only_are_flushed_silently)
{
    b.post(any_request().completion(prm::wqe_completion::on_first_error));
    const auto loud = b.post(any_request());
    fail();
    expect_flushed(cqe_opcode::requester_error, loud);
    EXPECT_FALSE(both.poll());
}

TEST_F(flushes, failing_twice_is_failing_once)
{
    b.post_receive(into(0, 8));
    fail();
    fail();
    EXPECT_EQ(both.poll_all().size(), 1u);
}

TEST_F(flushes, a_queue_pair_in_reset_does_not_fail)
{
    b.record().state = qp_state::reset;
    fail();
    EXPECT_EQ(b.record().state, qp_state::reset);
}

TEST_F(flushes, nothing_is_executed_in_the_wrong_state)
{
    for (const auto state : {qp_state::reset, qp_state::init, qp_state::rtr, qp_state::send_drain}) {
        b.record().state = state;
        b.post(any_request().signaled());
        EXPECT_FALSE(b.run());
        EXPECT_FALSE(b.flush());
    }
    EXPECT_FALSE(both.poll());
}

TEST_F(flushes, a_producer_counter_beyond_reason_ends)
{
    b.doorbell[6]                = std::byte{0xff};
    b.doorbell[7]                = std::byte{0xff};
    b.doorbell[2]                = std::byte{0xff};
    b.doorbell[3]                = std::byte{0xff};
    both.record().overrun_ignore = true;
    fail();
    EXPECT_EQ(b.record().send.consumed, 0xffff);
    EXPECT_EQ(b.record().receive.consumed, 0xffff);
}

TEST_F(flushes, only_its_own_process_runs_a_queue_pair)
{
    b.post(any_request().signaled());
    environment foreign = a.device();
    EXPECT_FALSE(run_send_queue(foreign, b.number, 1));
    EXPECT_EQ(b.record().send.consumed, 0);
}

} // namespace

} // namespace ucxl::softhca::test
