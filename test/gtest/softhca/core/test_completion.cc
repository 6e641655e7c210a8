// Completion queues: owner bits over many turns, overflow, and when events are sent.
#include "connected_pair.h"

#include "softhca/core/queues/completion.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::event_type;

class completion_queues : public connected_pair
{
protected:
    completion_queues()
    {
        queue.updates_consumer = true;
        a.record().send_cq     = queue.number;
    }

    void complete_one() { put(cqe_opcode::requester); }

    void put(cqe_opcode opcode, bool solicited = false)
    {
        completion cqe;
        (void)(*cqe.entry).set(prm::cqe64::opcode, opcode);
        (*cqe.entry).put(prm::cqe64::solicited, solicited);
        environment device = a.device();
        EXPECT_TRUE(complete(device, queue.number, cqe));
    }

    std::size_t woken() const { return events(100, queue.number).size(); }

    made_cq queue = kit.completion_queue(near, 2);
};

TEST_F(completion_queues, entries_are_the_consumers_for_many_turns)
{
    for (unsigned i = 0; i < 1000; i++) {
        ASSERT_FALSE(queue.poll());
        complete_one();
        ASSERT_TRUE(queue.poll()) << i;
    }
}

TEST_F(completion_queues, good_entries_have_the_time)
{
    machine.advance(12'345);
    complete_one();
    const auto good = queue.poll();
    ASSERT_TRUE(good);
    EXPECT_EQ((*good->bytes).get(prm::cqe64::timestamp), machine.time_ns);
    put(cqe_opcode::requester_error);
    const auto bad = queue.poll();
    ASSERT_TRUE(bad);
    EXPECT_EQ((*bad->bytes).get(prm::cqe64::timestamp), 0u) << "the vendor's syndrome is there";
}

TEST_F(completion_queues, consumer_counters_pass_24_bits)
{
    queue.record().producer      = 0xfffffc;
    queue.record().consumer_seen = 0xfffffc;
    queue.consumer               = 0xfffffc;
    for (unsigned i = 0; i < 16; i++) {
        complete_one();
        ASSERT_TRUE(queue.poll()) << i;
    }
}

TEST_F(completion_queues, a_full_queue_is_lost_with_an_event)
{
    for (int i = 0; i < 4; i++) {
        complete_one();
    }
    completion cqe;
    environment device = a.device();
    EXPECT_FALSE(complete(device, queue.number, cqe));
    EXPECT_TRUE(queue.record().overflowed);
    EXPECT_EQ(events(101, queue.number), std::vector{event_type::cq_error});
    EXPECT_EQ(queue.poll_all().size(), 4u);
    EXPECT_FALSE(complete(device, queue.number, cqe)) << "for good";
    EXPECT_EQ(events(101, queue.number).size(), 1u);
}

TEST_F(completion_queues, a_queue_may_ask_not_to_be_checked)
{
    queue.record().overrun_ignore = true;
    queue.updates_consumer        = false;
    for (unsigned i = 0; i < 100; i++) {
        complete_one();
        ASSERT_TRUE(queue.poll()) << i;
    }
}

TEST_F(completion_queues, a_queue_pair_that_loses_its_completions_fails)
{
    for (int i = 0; i < 5; i++) {
        a.post(write(0, 8));
    }
    a.run();
    EXPECT_EQ(a.record().state, qp_state::error);
    EXPECT_EQ(events(a), std::vector{event_type::wq_catastrophic_error});
}

TEST_F(completion_queues, memory_that_is_gone_loses_the_queue)
{
    queue.record().buffer.address = 0x1000;
    completion cqe;
    environment device = a.device();
    EXPECT_FALSE(complete(device, queue.number, cqe));
    EXPECT_EQ(events(101, queue.number), std::vector{event_type::cq_error});
}

TEST_F(completion_queues, nobody_is_woken_unasked)
{
    complete_one();
    EXPECT_EQ(woken(), 0u);
}

TEST_F(completion_queues, one_event_for_one_request)
{
    queue.arm(0);
    EXPECT_EQ(woken(), 0u);
    complete_one();
    EXPECT_EQ(woken(), 1u);
    complete_one();
    EXPECT_EQ(woken(), 1u);
}

TEST_F(completion_queues, entries_not_yet_polled_wake_at_once)
{
    complete_one();
    queue.arm(0);
    EXPECT_EQ(woken(), 1u);
    queue.poll();
    queue.arm(1);
    EXPECT_EQ(woken(), 1u);
    complete_one();
    EXPECT_EQ(woken(), 2u);
}

TEST_F(completion_queues, a_late_request_is_the_one_already_answered)
{
    queue.arm(0);
    complete_one();
    EXPECT_EQ(woken(), 1u);
    queue.arm(0); // its event is still unread
    complete_one();
    EXPECT_EQ(woken(), 1u);
    queue.poll_all();
    queue.arm(1);
    complete_one();
    EXPECT_EQ(woken(), 2u);
}

TEST_F(completion_queues, a_request_is_not_answered_by_an_event_that_was_lost)
{
    near.loses_events = true;
    queue.arm(0);
    complete_one();
    EXPECT_EQ(woken(), 0u);
    near.loses_events = false;
    queue.arm(0); // the number is the same, because nobody got the event
    EXPECT_EQ(woken(), 1u);
}

TEST_F(completion_queues, repeating_a_request_is_one_request)
{
    queue.arm(0);
    queue.arm(0);
    complete_one();
    EXPECT_EQ(woken(), 1u);
}

TEST_F(completion_queues, a_queue_without_a_channel_can_be_armed_again_and_again)
{
    queue.record().completion_events.channel = -1;
    queue.arm(0);
    complete_one();
    queue.poll();
    queue.record().completion_events.channel = 100;
    queue.arm(0);
    complete_one();
    EXPECT_EQ(woken(), 1u);
}

TEST_F(completion_queues, solicited_requests_wait_for_solicited_entries_or_errors)
{
    queue.arm(0, cq_arm::solicited_only);
    put(cqe_opcode::responder_send);
    EXPECT_EQ(woken(), 0u);
    put(cqe_opcode::responder_send, true);
    EXPECT_EQ(woken(), 1u);
    queue.poll_all();

    queue.arm(1, cq_arm::solicited_only);
    put(cqe_opcode::requester_error);
    EXPECT_EQ(woken(), 2u);
    queue.arm(2, cq_arm::solicited_only);
    EXPECT_EQ(woken(), 3u) << "the error is not polled yet";
    queue.poll_all();
    put(cqe_opcode::responder_send);
    queue.arm(3, cq_arm::solicited_only);
    EXPECT_EQ(woken(), 3u);
}

TEST_F(completion_queues, collapsed_ones_have_one_entry)
{
    queue.record().collapsed      = true;
    queue.record().overrun_ignore = true;
    complete_one();
    complete_one();
    EXPECT_EQ(queue.buffer[63] >> 4, std::byte{0});
    EXPECT_EQ(queue.buffer[127] >> 4, std::byte{15});
}

TEST_F(completion_queues, solicited_sends_wake_the_receiver)
{
    b_receives.arm(0, cq_arm::solicited_only);
    b.post_receive(into(0, 100));
    b.post_receive(into(0, 100));
    a.post(send(8));
    a.run();
    EXPECT_TRUE(events(100, b_receives.number).empty());
    a.post(send(8).solicited());
    a.run();
    EXPECT_EQ(events(100, b_receives.number).size(), 1u);
    EXPECT_EQ(machine.notifications.back().client, far.id());
}

} // namespace

} // namespace ucxl::softhca::test
