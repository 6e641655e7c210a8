// Senders killed at any instruction of a delivery: either both the receive was consumed and its CQE written, or
// neither, and the receiver's queues continue with messages of others.
#include "connected_pair.h"
#include "stepped_process.h"

#include <set>
#include <vector>

namespace ucxl::softhca::test
{

namespace
{

// So many instructions before the CQE, and no more, every few are a place to die.
constexpr std::uint64_t most_early = 200;

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

    // The instructions of a delivery until its CQE is written. Shortly before that comes one for the first time, so a
    // delivery can run there at once instead of step by step.
    struct steps_to_cqe {
        std::uint64_t number      = 0;
        std::uint64_t until_place = 0;
        std::uintptr_t place      = 0; // 0 for none
    };

    // Killed `early` instructions before the CQE is written, or `late` after.
    void kill_sender(const steps_to_cqe& delivery, std::uint64_t early, std::uint64_t late)
    {
        auto child = stepped_process::start(near, [&] { near.device().progress_queue_pair(a.number); });
        ASSERT_TRUE(child);
        const std::uint64_t wanted = delivery.number - early;
        const bool is_near         = delivery.until_place <= wanted && child->run_to(delivery.place);
        for (std::uint64_t i = is_near ? delivery.until_place : 0; i < wanted && child->step(); i++) {
        }
        for (std::uint64_t i = 0; i < late && child->step(); i++) {
        }
        child->kill();
        ASSERT_TRUE(near.has_lock()) << "the delivery was over";
        near.kill_with_lock();
    }

    // Nothing when it cannot be observed.
    std::optional<steps_to_cqe> count_steps()
    {
        auto child = stepped_process::start(near, [&] { near.device().progress_queue_pair(a.number); });
        if (!child) {
            return std::nullopt;
        }
        std::vector<std::uintptr_t> places{child->place()};
        while (!visible() && child->step()) {
            places.push_back(child->place());
        }
        child->kill();
        near.kill_with_lock();
        steps_to_cqe found{.number = places.size() - 1};
        std::set<std::uintptr_t> seen;
        for (std::uint64_t i = 0; i + most_early < found.number; i++) {
            if (seen.insert(places[i]).second) {
                found.until_place = i;
                found.place       = places[i];
            }
        }
        return found;
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
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer executes another number of instructions each time";
#endif
    const auto delivery = one_death(GetParam()).count_steps();
    if (!delivery) {
        GTEST_SKIP() << "processes cannot be traced here";
    }
    for (std::uint64_t late = 0; late < 160; late += 4) {
        SCOPED_TRACE("killed " + std::to_string(late) + " instructions after the completion was there");
        one_death death(GetParam());
        ASSERT_NO_FATAL_FAILURE(death.kill_sender(*delivery, 0, late));
        ASSERT_NO_FATAL_FAILURE(death.expect_others_go_on(1));
    }
    for (std::uint64_t early = 1; early < delivery->number; early += early < most_early ? 7 : 1500) {
        SCOPED_TRACE("killed " + std::to_string(early) + " instructions before the completion was there");
        one_death death(GetParam());
        ASSERT_NO_FATAL_FAILURE(death.kill_sender(*delivery, early, 0));
        ASSERT_NO_FATAL_FAILURE(death.expect_others_go_on(0));
    }
}

INSTANTIATE_TEST_SUITE_P(receives, delivery_death_steps, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "shared" : "own"; });

} // namespace

} // namespace ucxl::softhca::test
