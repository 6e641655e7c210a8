// Senders killed at any instruction of a delivery: either both the receive was consumed and its CQE written, or
// neither, and the receiver's queues continue with messages of others.
#include "connected_pair.h"
#include "stepped_process.h"

namespace ucxl::softhca::test
{

namespace
{

class delivery_death : public connected_pair
{
protected:
    // Others send to the same CQ and the same shared receive queue.
    delivery_death()
    {
        queue_kit::connect(c, d);
        for (made_qp* one : {&b, &d}) {
            one->record().receive_cq = b_receives.number;
        }
    }

    void share_receives()
    {
        for (made_qp* one : {&b, &d}) {
            one->record().srq             = queue.number;
            one->record().receive.present = false;
        }
        for (std::uint16_t i = 0; i < 5; i++) {
            queue.post(into(i * 100, 100));
        }
    }

    bool visible() const { return (b_receives.buffer[63] >> 4) != std::byte{15}; }

    // Killed `early` instructions before the CQE is written, or `late` after.
    void kill_sender(std::uint64_t appears_after, std::uint64_t early, std::uint64_t late)
    {
        auto child = stepped_process::start(near, [&] { near.device().progress_queue_pair(a.number); });
        ASSERT_TRUE(child);
        for (std::uint64_t i = early; i < appears_after && child->step(); i++) {
        }
        for (std::uint64_t i = 0; i < late && child->step(); i++) {
        }
        child->kill();
        ASSERT_TRUE(near.has_lock()) << "the delivery was over";
        near.kill_with_lock();
    }

    // The number of instructions until the CQE is written; nothing when that cannot be observed.
    std::optional<std::uint64_t> count_steps()
    {
        auto child = stepped_process::start(near, [&] { near.device().progress_queue_pair(a.number); });
        if (!child) {
            return std::nullopt;
        }
        std::uint64_t steps = 0;
        while (!visible() && child->step()) {
            steps++;
        }
        child->kill();
        near.kill_with_lock();
        return steps;
    }

    void expect_others_go_on(std::size_t delivered)
    {
        for (std::uint16_t i = 0; i < 3; i++) {
            if (b.record().srq == 0) {
                d.post_receive(into(500U + i * 100U, 100));
            }
            c.post(work_request(wqe_opcode::send).data(other_key, address_of(other_source), 8));
        }
        other.device().progress_queue_pair(c.number);
        const auto all = b_receives.poll_all();
        ASSERT_EQ(all.size(), delivered + 3);
        for (std::size_t i = 0; i < all.size(); i++) {
            EXPECT_FALSE(all[i].failed());
            if (b.record().srq != 0) {
                EXPECT_EQ(all[i].counter(), i);
            }
        }
        EXPECT_EQ(b_receives.record().producer, delivered + 3);
        EXPECT_EQ(b.record().srq != 0 ? queue.record().consumed - 3U : b.record().receive.consumed, delivered);
    }

    test_process& other               = machine.start();
    std::span<std::byte> other_source = other.allocate(64);
    std::uint32_t other_key           = make.direct(other.id(), other_source);
    made_cq c_sends                   = kit.completion_queue(other);
    made_qp c                         = kit.queue_pair(other, {.send_cq = &c_sends, .receive_cq = &c_sends});
    made_qp d                         = kit.queue_pair(far, {.send_cq = &b_sends, .receive_cq = &b_receives});
    made_srq queue                    = kit.shared_receive_queue(far);
};

class delivery_death_steps : public ::testing::TestWithParam<bool>
{
};

// Each death has a machine of its own.
class one_death : public delivery_death
{
public:
    explicit one_death(bool shared)
    {
        if (shared) {
            share_receives();
        } else {
            b.post_receive(into(0, 100));
        }
        a.post(send(8));
    }

    void TestBody() override {}

    using delivery_death::count_steps;
    using delivery_death::expect_others_go_on;
    using delivery_death::kill_sender;
};

TEST_P(delivery_death_steps, receive_and_completion_are_one)
{
    const auto appears_after = one_death(GetParam()).count_steps();
    if (!appears_after) {
        GTEST_SKIP() << "processes cannot be traced here";
    }
    for (std::uint64_t late = 0; late < 160; late += 4) {
        SCOPED_TRACE("killed " + std::to_string(late) + " instructions after the completion was there");
        one_death death(GetParam());
        ASSERT_NO_FATAL_FAILURE(death.kill_sender(*appears_after, 0, late));
        ASSERT_NO_FATAL_FAILURE(death.expect_others_go_on(1));
    }
    for (std::uint64_t early = 1; early < *appears_after; early += early < 200 ? 7 : 1500) {
        SCOPED_TRACE("killed " + std::to_string(early) + " instructions before the completion was there");
        one_death death(GetParam());
        ASSERT_NO_FATAL_FAILURE(death.kill_sender(*appears_after, early, 0));
        ASSERT_NO_FATAL_FAILURE(death.expect_others_go_on(0));
    }
}

INSTANTIATE_TEST_SUITE_P(receives, delivery_death_steps, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "shared" : "own"; });

} // namespace

} // namespace ucxl::softhca::test
