// Requests that move many bytes or many pieces are executed in turns, so that others get the lock in between. Tests
// what may happen between two turns.
#include "connected_pair.h"

#include <algorithm>

namespace ucxl::softhca::test
{

namespace
{

constexpr std::size_t count           = 4000; // pieces of one byte
constexpr unsigned turns_of_pieces    = 4;
constexpr std::size_t large           = (3U << 20) + 5;
constexpr unsigned turns_of_the_large = 4;

class turns : public connected_pair
{
protected:
    // Every second byte of the source, from the end.
    std::uint32_t strided()
    {
        std::vector<translation_entry> entries;
        for (std::uint64_t i = 0; i < count; i++) {
            entries.push_back(klm(1, source_key, address_of(source) + 8190 - 2 * i));
        }
        return make.list(entries);
    }

    bool strided_arrived(std::size_t bytes = count) const
    {
        for (std::size_t i = 0; i < bytes; i++) {
            if (target[i] != source[8190 - 2 * i]) {
                return false;
            }
        }
        return true;
    }

    work_request strided_request(wqe_opcode opcode)
    {
        return work_request(opcode).remote(address_of(target), target_key).data(key, 0, count).signaled();
    }

    work_request strided_send() { return work_request(wqe_opcode::send).data(key, 0, count).signaled(); }

    // The number of turns until the sender has a CQE.
    unsigned turns_until_done(made_qp& qp, made_cq& cq)
    {
        unsigned taken = 0;
        while (taken < 100) {
            EXPECT_TRUE(qp.run());
            taken++;
            if (const auto done = cq.poll()) {
                EXPECT_FALSE(done->failed());
                EXPECT_EQ(qp.record().send.progress.waiting, requester_wait::none);
                return taken;
            }
            EXPECT_EQ(qp.record().send.progress.waiting, requester_wait::turn);
        }
        return taken;
    }

    std::uint32_t key = strided();
};

TEST_F(turns, many_pieces_are_written_in_turns_and_completed_once)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.post(write(5000, 8));
    EXPECT_TRUE(a.run());
    EXPECT_TRUE(strided_arrived(1024));
    EXPECT_EQ(target[1024], std::byte{0});
    EXPECT_EQ(target[5000], std::byte{0}) << "what was posted behind it";
    EXPECT_FALSE(a_sends.poll());
    EXPECT_EQ(turns_until_done(a, a_sends), turns_of_pieces - 1);
    EXPECT_TRUE(strided_arrived());
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(5000, 5000, 8));
    EXPECT_EQ(machine.memory().counts.bytes_moved, count + 8);
}

TEST_F(turns, many_bytes_are_written_and_read_in_turns)
{
    const auto here      = near.allocate(large);
    const auto far_bytes = far.allocate(large);
    for (std::size_t i = 0; i < large; i++) {
        here[i] = static_cast<std::byte>(i * 31 + i / 4096);
    }
    const std::uint32_t here_key = make.direct(near.id(), here);
    const std::uint32_t far_key  = make.direct(far.id(), far_bytes);
    for (const wqe_opcode opcode : {wqe_opcode::rdma_write, wqe_opcode::rdma_read}) {
        a.post(work_request(opcode)
                   .remote(address_of(far_bytes), far_key)
                   .data(here_key, address_of(here), 1000)
                   .data(here_key, address_of(here) + 1000, large - 1000)
                   .signaled());
        EXPECT_EQ(turns_until_done(a, a_sends), turns_of_the_large);
        EXPECT_TRUE(std::ranges::equal(here, far_bytes));
        std::ranges::reverse(far_bytes);
    }
    a.post(work_request(wqe_opcode::rdma_write)
               .remote(address_of(far_bytes), far_key)
               .data(here_key, address_of(here), large)
               .signaled());
    EXPECT_EQ(turns_until_done(a, a_sends), turns_of_the_large);
    EXPECT_TRUE(std::ranges::equal(here, far_bytes));
}

TEST_F(turns, messages_complete_at_both_ends_after_the_last_turn)
{
    for (const wqe_opcode opcode : {wqe_opcode::send, wqe_opcode::rdma_write_imm}) {
        std::ranges::fill(target, std::byte{0});
        b.post_receive(into(0, 8192));
        a.post(opcode == wqe_opcode::send ? strided_send() : strided_request(opcode));
        EXPECT_TRUE(a.run());
        EXPECT_FALSE(b_receives.poll());
        EXPECT_EQ(b.record().receive.consumed, opcode == wqe_opcode::send ? 0 : 1);
        EXPECT_EQ(turns_until_done(a, a_sends), turns_of_pieces - 1);
        EXPECT_EQ(only(b_receives).length(), count);
        EXPECT_TRUE(strided_arrived());
    }
}

TEST_F(turns, unreliable_messages_too)
{
    made_qp c = kit.queue_pair(near, {.send_cq = &a_sends, .receive_cq = &a_receives, .service = qp_service::uc});
    made_qp d = kit.queue_pair(far, {.send_cq = &b_sends, .receive_cq = &b_receives, .service = qp_service::uc});
    queue_kit::connect(c, d);
    d.post_receive(into(0, 8192));
    c.post(strided_send());
    EXPECT_EQ(turns_until_done(c, a_sends), turns_of_pieces);
    EXPECT_EQ(only(b_receives).length(), count);
    EXPECT_TRUE(strided_arrived());
}

// The receive would go to another sender between two turns.
TEST_F(turns, a_message_for_a_shared_queue_is_moved_at_once)
{
    made_srq queue             = kit.shared_receive_queue(far);
    b.record().srq             = queue.number;
    b.record().receive.present = false;
    queue.post(into(0, 8192));
    a.post(strided_send());
    EXPECT_EQ(turns_until_done(a, a_sends), 1u);
    EXPECT_TRUE(strided_arrived());
}

TEST_F(turns, others_are_served_between_two_turns)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.run();
    b.post(work_request(wqe_opcode::rdma_read)
               .remote(address_of(source), source_key)
               .data(target_key, address_of(target) + 5000, 8)
               .signaled());
    b.run();
    EXPECT_FALSE(only(b_sends).failed());
    EXPECT_TRUE(arrived(5000, 0, 8));
    EXPECT_EQ(turns_until_done(a, a_sends), turns_of_pieces - 1);
}

TEST_F(turns, the_lock_is_offered_between_two_turns)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    EXPECT_TRUE(near.device().progress_queue_pair(a.number));
    EXPECT_EQ(near.ways_given, turns_of_pieces - 1);
    EXPECT_TRUE(strided_arrived());
    EXPECT_FALSE(only(a_sends).failed());
}

TEST_F(turns, a_key_that_ends_between_two_turns_ends_the_request)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.post(write(0, 8));
    a.run();
    make.record(target_key).free = true;
    a.run();
    expect_error(a_sends.poll(), cqe_syndrome::remote_access);
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
    EXPECT_EQ(b.record().state, qp_state::error);
}

TEST_F(turns, a_queue_pair_in_error_forgets_its_turn)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.run();
    environment device = a.device();
    fail_queue_pair(device, a.number);
    expect_error(a_sends.poll(), cqe_syndrome::flushed);
    a.record().state = qp_state::rts;
    std::ranges::fill(target, std::byte{0});
    a.post(strided_request(wqe_opcode::rdma_write));
    EXPECT_EQ(turns_until_done(a, a_sends), turns_of_pieces);
    EXPECT_TRUE(strided_arrived()) << "from its beginning";
}

TEST_F(turns, a_peer_that_dies_between_two_turns_does_not_answer)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.run();
    far.kill();
    a.run();
    EXPECT_EQ(a.record().send.progress.waiting, requester_wait::transport);
    EXPECT_EQ(a.record().send.progress.moved, 0u);
    EXPECT_FALSE(a_sends.poll());
}

TEST_F(turns, a_request_that_its_program_makes_shorter_meanwhile_ends)
{
    a.post(strided_request(wqe_opcode::rdma_write));
    a.run();
    a.produced = 0;
    a.post(work_request(wqe_opcode::rdma_write).remote(address_of(target), target_key).data(key, 0, 100).signaled());
    EXPECT_EQ(turns_until_done(a, a_sends), 1u);
    EXPECT_EQ(target[1024], std::byte{0});
}

TEST_F(turns, a_request_counts_once_for_faults_and_statistics)
{
    machine.memory().faults.rules[0] = {
        .kind = fault_kind::drop, .opcode = static_cast<std::uint32_t>(wqe_opcode::rdma_write), .first = 2, .times = 1};
    a.post(strided_request(wqe_opcode::rdma_write));
    EXPECT_EQ(turns_until_done(a, a_sends), turns_of_pieces) << "the drop is for the second one";
    EXPECT_EQ(machine.memory().counts.wqes[static_cast<std::size_t>(wqe_opcode::rdma_write)], 1u);
    a.post(write(0, 8));
    a.run();
    EXPECT_FALSE(a_sends.poll());
    EXPECT_EQ(machine.memory().counts.faults_injected, 1u);
}

} // namespace

} // namespace ucxl::softhca::test
