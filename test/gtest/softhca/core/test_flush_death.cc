// A process is killed at any instruction while it flushes the queues of its peer, which had sent the bad request. Every
// WQE of the peer completes once, in order, whoever continues.
#include "connected_pair.h"
#include "stepped_process.h"

#include <cmath>

namespace ucxl::softhca::test
{

namespace
{

constexpr unsigned posted = 3; // sends, and as many receives

class flush_death : public connected_pair, public ::testing::WithParamInterface<int>
{
protected:
    flush_death()
    {
        for (unsigned i = 0; i < posted; i++) {
            b.post(work_request(wqe_opcode::nop).signaled());
            b.post_receive(into(i * 100, 100));
        }
        a.post(work_request(wqe_opcode::rdma_write)
                   .remote(address_of(target), target_key ^ 0x100)
                   .data(source_key, address_of(source), 8)
                   .signaled());
    }

    static void expect_all_flushed(made_cq& cq)
    {
        const auto found = cq.poll_all();
        ASSERT_EQ(found.size(), posted);
        for (unsigned i = 0; i < posted; i++) {
            EXPECT_EQ(found[i].syndrome(), cqe_syndrome::flushed);
            EXPECT_EQ(found[i].counter(), i);
        }
    }
};

TEST_P(flush_death, every_request_is_completed_once)
{
    const auto steps = static_cast<std::uint64_t>(100 * std::pow(1.5, GetParam()));
    {
        auto child = stepped_process::start(near, [&] { near.device().progress_queue_pair(a.number); });
        if (!child) {
            GTEST_SKIP() << "processes cannot be traced here";
        }
        for (std::uint64_t i = 0; i < steps && child->step(); i++) {
        }
        child->kill();
    }
    if (near.has_lock()) {
        near.kill_with_lock();
    } else {
        near.kill();
    }
    const bool told = b.record().state == qp_state::error;
    if (!told) {
        b.record().state = qp_state::error; // as its program would do when nobody answers any more
    }
    far.device().progress_queue_pair(b.number);
    expect_all_flushed(b_sends);
    expect_all_flushed(b_receives);
    EXPECT_FALSE(far.device().progress_queue_pair(b.number)) << "nothing is left";
}

INSTANTIATE_TEST_SUITE_P(steps, flush_death, ::testing::Range(0, 14));

} // namespace

} // namespace ucxl::softhca::test
