// Receives from shared queues: linked lists and rings, the limit event, the end of a queue pair.
#include "connected_pair.h"

#include "support/random.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::event_type;
using ucxl::test::random;
using ucxl::test::run_seed;

class shared_receives : public connected_pair
{
protected:
    shared_receives()
    {
        a.record().rnr_retry = 0;
        use(queue);
    }

    void use(const made_srq& srq)
    {
        b.record().srq             = srq.number;
        b.record().receive.present = false;
    }

    std::optional<polled> receive_one(std::uint32_t length = 8)
    {
        a.post(send(length));
        a.run();
        a_sends.poll();
        return b_receives.poll();
    }

    std::vector<event_type> limit_events() const { return events(102, queue.number); }

    made_srq queue = kit.shared_receive_queue(far);
};

TEST_F(shared_receives, entries_are_taken_along_the_list)
{
    for (std::uint16_t i = 0; i < 10; i++) {
        queue.post(into(i * 100, 100));
    }
    for (std::uint16_t i = 0; i < 10; i++) {
        const auto got = receive_one();
        ASSERT_TRUE(got && !got->failed());
        EXPECT_EQ(got->counter(), i);
        EXPECT_EQ((*got->bytes).get(prm::cqe64::srqn_uidx), b.record().user_index);
        EXPECT_TRUE(arrived(i * 100, 0, 8));
    }
}

TEST_F(shared_receives, entries_given_back_in_any_order_are_found_again)
{
    random numbers(run_seed());
    std::vector<std::uint16_t> held;
    std::vector<std::uint16_t> posted;
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned i = 0; i < 20'000; i++) {
        const bool room = held.size() + posted.size() < 15;
        if (room && numbers.one_in(2)) {
            posted.push_back(queue.tail);
            queue.post(into(queue.tail * 100U, 100));
        } else if (!posted.empty() && numbers.one_in(2)) {
            const auto got = receive_one();
            ASSERT_TRUE(got && !got->failed()) << "seed " << run_seed() << " step " << i;
            ASSERT_EQ(got->counter(), posted.front()) << "seed " << run_seed() << " step " << i;
            held.push_back(posted.front());
            posted.erase(posted.begin());
        } else if (!held.empty()) {
            numbers.shuffle(held);
            queue.give_back(held.back());
            held.pop_back();
        }
    }
}

TEST_F(shared_receives, rings_are_taken_in_order_and_named_by_a_running_counter)
{
    made_srq ring = kit.shared_receive_queue(far, 2, false);
    use(ring);
    for (unsigned i = 0; i < 70'000; i++) {
        ring.post(into(i % 4000, 100));
        const auto got = receive_one();
        ASSERT_TRUE(got && !got->failed()) << i;
        ASSERT_EQ(got->counter(), static_cast<std::uint16_t>(i));
    }
}

TEST_F(shared_receives, rings_of_plain_entries)
{
    made_srq ring        = kit.shared_receive_queue(far, 2, false);
    ring.record().headed = false;
    use(ring);
    ring.post(into(500, 100));
    ASSERT_TRUE(receive_one());
    EXPECT_TRUE(arrived(500, 0, 8));
}

TEST_F(shared_receives, an_empty_queue_is_not_ready)
{
    a.post(send(8));
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::rnr_retry_exceeded);
}

TEST_F(shared_receives, keys_belong_to_the_queues_protection_domain)
{
    make.record(target_key).pd = 55;
    queue.record().pd          = 55;
    queue.post(into(0, 100));
    const auto got = receive_one();
    ASSERT_TRUE(got);
    EXPECT_FALSE(got->failed());
}

TEST_F(shared_receives, the_limit_is_told_once)
{
    for (int i = 0; i < 6; i++) {
        queue.post(into(0, 100));
    }
    queue.record().limit = 4;
    receive_one();
    receive_one();
    EXPECT_TRUE(limit_events().empty());
    receive_one();
    EXPECT_EQ(limit_events(), std::vector{event_type::srq_limit_reached});
    receive_one();
    EXPECT_EQ(limit_events().size(), 1u);
    EXPECT_EQ(queue.record().limit, 0);
}

TEST_F(shared_receives, a_failed_queue_pair_leaves_the_queue_to_the_others)
{
    queue.post(into(0, 100));
    environment device = b.device();
    fail_queue_pair(device, b.number);
    fail_queue_pair(device, b.number);
    EXPECT_EQ(events(b), std::vector{event_type::srq_last_wqe});
    EXPECT_FALSE(b_receives.poll());
    EXPECT_EQ(queue.record().consumed, 0);
}

TEST_F(shared_receives, an_error_names_the_entry)
{
    queue.post(into(0, 100));
    queue.post(into(0, 4));
    receive_one();
    const auto got = receive_one();
    ASSERT_NO_FATAL_FAILURE(expect_error(got, cqe_syndrome::local_length));
    EXPECT_EQ(got->counter(), 1);
    EXPECT_EQ(events(b), std::vector{event_type::srq_last_wqe});
}

TEST_F(shared_receives, links_that_lead_nowhere_stay_inside)
{
    random numbers(run_seed());
    for (int i = 0; i < 2000; i++) {
        for (std::byte& byte : queue.buffer) {
            byte = static_cast<std::byte>(numbers.next());
        }
        queue.doorbell[2]       = static_cast<std::byte>(numbers.next());
        queue.doorbell[3]       = static_cast<std::byte>(numbers.next());
        b.record().state        = qp_state::rts;
        a.record().state        = qp_state::rts;
        b.record().expected_psn = a.record().send.psn;
        a.post(send(8));
        a.run();
        a_sends.poll_all();
        b_receives.poll_all();
    }
    EXPECT_EQ(far.refused_moves, 0u);
}

} // namespace

} // namespace ucxl::softhca::test
