// Peers that do not answer or are not ready: how long the requester waits, how often it retries, and how it gives up.
#include "connected_pair.h"

#include "softhca/core/queues/retry.h"

namespace ucxl::softhca::test
{

namespace
{

constexpr std::uint64_t timeout_ns = 4096ULL << 14;
constexpr std::uint64_t rnr_ns     = 640'000;

class retries : public connected_pair
{
protected:
    // Advances the time. The process runs only when it asked to be woken.
    void pass(std::uint64_t time_ns)
    {
        const std::uint64_t end = machine.time_ns + time_ns;
        while (near.woken_at_ns <= end) {
            machine.time_ns  = near.woken_at_ns;
            near.woken_at_ns = UINT64_MAX;
            a.run();
        }
        machine.time_ns = end;
    }

    // It fails after one timeout per try, and not before.
    void expect_given_up()
    {
        a.post(write(0, 8));
        a.run();
        pass(timeout_ns * 4 - 1);
        EXPECT_FALSE(a_sends.poll());
        EXPECT_EQ(a.record().state, qp_state::rts);
        pass(1);
        expect_error(a_sends.poll(), cqe_syndrome::transport_retry_exceeded);
        EXPECT_EQ(a.record().state, qp_state::error);
        EXPECT_EQ(machine.memory().counts.transport_retries, 3u);
    }
};

TEST_F(retries, timers_are_those_of_the_specification)
{
    EXPECT_EQ(rnr_timer_ns(0), 655'360'000u);
    EXPECT_EQ(rnr_timer_ns(1), 10'000u);
    EXPECT_EQ(rnr_timer_ns(12), 640'000u);
    EXPECT_EQ(rnr_timer_ns(13), 960'000u);
    EXPECT_EQ(rnr_timer_ns(31), 491'520'000u);
    EXPECT_EQ(ack_timeout_ns(14), 67'108'864u);
    EXPECT_EQ(ack_timeout_ns(0), never_ns);
}

TEST_F(retries, a_peer_not_yet_ready_to_receive_is_tried_until_it_is)
{
    b.record().state = qp_state::init;
    a.post(write(0, 8));
    EXPECT_FALSE(a.run());
    pass(timeout_ns * 2);
    EXPECT_FALSE(a_sends.poll());
    b.record().state = qp_state::rtr;
    pass(timeout_ns);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(retries, each_of_two_waiting_queues_is_woken)
{
    made_cq sends   = kit.completion_queue(near);
    made_qp later   = kit.queue_pair(near, {.send_cq = &sends, .receive_cq = &sends});
    made_cq answers = kit.completion_queue(far);
    made_qp peer    = kit.queue_pair(far, {.send_cq = &answers, .receive_cq = &answers});
    queue_kit::connect(later, peer);
    b.record().min_rnr_timer    = 12;
    peer.record().min_rnr_timer = 13;
    for (made_qp* qp : {&later, &a}) {
        qp->post(send(8));
        qp->run();
    }
    b.post_receive(into(0, 8));
    peer.post_receive(into(8, 8));
    // One call for all queues of the process, at the earliest time that one of them asked for.
    for (unsigned calls = 0; calls < 10 && near.woken_at_ns != UINT64_MAX; calls++) {
        machine.time_ns  = near.woken_at_ns;
        near.woken_at_ns = UINT64_MAX;
        a.run();
        later.run();
    }
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_FALSE(only(sends).failed());
}

TEST_F(retries, a_peer_in_the_wrong_state_never_answers)
{
    b.record().state = qp_state::error;
    expect_given_up();
}

TEST_F(retries, a_number_that_is_nobody_never_answers)
{
    a.record().path.remote_qpn = 4711;
    expect_given_up();
}

TEST_F(retries, a_peer_at_another_place_never_answers)
{
    a.record().path.remote_lid = 99;
    expect_given_up();
}

TEST_F(retries, a_peer_connected_to_somebody_else_never_answers)
{
    b.record().path.remote_qpn++;
    expect_given_up();
}

TEST_F(retries, a_peer_connected_to_another_place_never_answers)
{
    b.record().path.remote_lid++;
    expect_given_up();
}

TEST_F(retries, a_peer_of_another_service_never_answers)
{
    b.record().service = qp_service::uc;
    expect_given_up();
}

TEST_F(retries, a_peer_with_other_sequence_numbers_never_answers)
{
    b.record().expected_psn++;
    expect_given_up();
}

TEST_F(retries, a_peer_whose_process_ended_never_answers)
{
    far.kill();
    expect_given_up();
}

TEST_F(retries, a_message_of_nothing_to_a_dead_process_is_not_answered)
{
    far.kill();
    a.post(work_request(wqe_opcode::rdma_write).remote(0, 0).signaled());
    a.run();
    EXPECT_FALSE(a_sends.poll());
}

TEST_F(retries, what_stands_behind_waits_in_order)
{
    b.record().state = qp_state::init;
    a.post(write(0, 8));
    a.post(write(8, 8));
    a.run();
    a.run();
    b.record().state = qp_state::rts;
    EXPECT_FALSE(a.run()) << "before its time";
    EXPECT_EQ(target[0], std::byte{0});
    pass(timeout_ns);
    EXPECT_EQ(a_sends.poll_all().size(), 2u);
    EXPECT_TRUE(arrived(0, 0, 16));
}

TEST_F(retries, without_a_timeout_what_was_lost_stays_lost)
{
    a.record().ack_timeout = 0;
    b.record().state       = qp_state::init;
    a.post(write(0, 8));
    a.run();
    b.record().state = qp_state::rts;
    pass(1'000'000'000'000);
    EXPECT_FALSE(a_sends.poll());
    EXPECT_EQ(a.record().state, qp_state::rts);
}

TEST_F(retries, a_receive_posted_in_time_is_found)
{
    a.post(send(8));
    a.run();
    pass(rnr_ns * 2);
    b.post_receive(into(0, 100));
    EXPECT_FALSE(b_receives.poll());
    pass(rnr_ns);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_FALSE(only(b_receives).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(retries, receiver_not_ready_for_too_long)
{
    a.post(send(8));
    a.run();
    pass(rnr_ns * 3 - 1);
    EXPECT_FALSE(a_sends.poll());
    pass(1);
    expect_error(a_sends.poll(), cqe_syndrome::rnr_retry_exceeded);
    EXPECT_EQ(a.record().state, qp_state::error);
    EXPECT_EQ(b.record().state, qp_state::rts);
    EXPECT_EQ(machine.memory().counts.rnr_waits, 3u);
}

TEST_F(retries, no_rnr_retry_at_all)
{
    a.record().rnr_retry = 0;
    a.post(send(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::rnr_retry_exceeded);
}

TEST_F(retries, seven_rnr_retries_are_endless)
{
    a.record().rnr_retry = 7;
    a.post(send(8));
    a.run();
    pass(rnr_ns * 100);
    EXPECT_FALSE(a_sends.poll());
    b.post_receive(into(0, 100));
    pass(rnr_ns);
    EXPECT_FALSE(only(a_sends).failed());
}

TEST_F(retries, every_request_has_its_own_tries)
{
    for (int i = 0; i < 3; i++) {
        a.post(send(8));
        a.run();
        pass(rnr_ns * 3 - 1);
        b.post_receive(into(0, 100));
        pass(1);
        EXPECT_FALSE(only(a_sends).failed()) << i;
    }
}

TEST_F(retries, a_write_with_immediate_waits_for_a_receive_before_it_writes)
{
    a.post(work_request(wqe_opcode::rdma_write_imm)
               .remote(address_of(target), target_key)
               .data(source_key, address_of(source), 8)
               .signaled());
    a.run();
    EXPECT_EQ(target[0], std::byte{0});
    b.post_receive(into(0, 0));
    pass(rnr_ns);
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(retries, a_request_in_its_wait_is_flushed_when_the_queue_pair_fails)
{
    a.post(send(8));
    a.run();
    environment device = a.device();
    fail_queue_pair(device, a.number);
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
    pass(rnr_ns * 10);
    EXPECT_FALSE(a_sends.poll());
}

TEST_F(retries, draining_finishes_what_was_begun)
{
    a.post(send(8));
    a.run();
    a.post(write(0, 8));
    a.record().state = qp_state::send_drain;
    b.post_receive(into(100, 100));
    pass(rnr_ns);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(target[0], std::byte{0});
    a.record().state = qp_state::rts;
    a.run();
    EXPECT_TRUE(arrived(0, 0, 8));
}

class injected : public retries
{
protected:
    void rule(const fault_rule& one) { machine.memory().faults.rules[0] = one; }
};

TEST_F(injected, a_chosen_request_fails_as_asked)
{
    rule({.kind = fault_kind::wqe, .status = 0x04, .opcode = 0x08, .first = 2});
    a.post(write(0, 8));
    a.post(write(8, 8));
    a.run();
    EXPECT_FALSE(a_sends.poll()->failed());
    expect_error(a_sends.poll(), cqe_syndrome::local_protection);
    EXPECT_EQ(a.record().state, qp_state::error);
    EXPECT_EQ(target[8], std::byte{0});
    EXPECT_EQ(machine.memory().counts.faults_injected, 1u);
}

TEST_F(injected, delays_are_waited_for)
{
    rule({.kind = fault_kind::delay, .first = 1, .amount = 5000});
    a.post(write(0, 8));
    a.run();
    pass(4999);
    EXPECT_FALSE(a_sends.poll());
    pass(1);
    EXPECT_FALSE(only(a_sends).failed());
}

TEST_F(injected, dropped_messages_are_tried_again)
{
    rule({.kind = fault_kind::drop, .first = 1, .times = 2});
    a.post(write(0, 8));
    a.run();
    pass(timeout_ns * 2 - 1);
    EXPECT_EQ(target[0], std::byte{0});
    pass(1);
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(machine.memory().counts.transport_retries, 2u);
}

} // namespace

} // namespace ucxl::softhca::test
