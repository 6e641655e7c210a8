// Stream channels of initiators of dynamic connections: what an error of one of them means for the others.
#include "dynamic_pair.h"

namespace ucxl::softhca::test
{

namespace
{

class dc_streams : public dynamic_pair
{
protected:
    dc_streams()
    {
        a.record().dc.log_streams = 2;
        a.record().dc.log_errored = 1;
    }

    void post(std::uint16_t channel, bool good)
    {
        a.post(work_request(wqe_opcode::rdma_write)
                   .stream(channel)
                   .target(there.lid(), there.number, dc_access_key)
                   .remote(address_of(target), good ? target_key : target_key ^ 1)
                   .data(source_key, address_of(source), 8)
                   .signaled());
    }

    // The outcomes of all that was posted: success, flushed or another error.
    std::string outcomes()
    {
        std::string all;
        for (const polled& one : a_sends.poll_all()) {
            all += !one.failed() ? 's' : one.syndrome() == cqe_syndrome::flushed ? 'f' : 'e';
        }
        return all;
    }
};

TEST_F(dc_streams, an_error_flushes_its_channel_only)
{
    for (const std::uint16_t channel : {0, 1, 2, 1, 3, 1}) {
        post(channel, channel != 1);
    }
    a.run();
    EXPECT_EQ(outcomes(), "sesfsf");
    EXPECT_EQ(a.record().state, qp_state::rts);
    EXPECT_EQ(machine.memory().counts.flushed_wqes, 2u);
}

TEST_F(dc_streams, so_many_channels_in_error_fail_all)
{
    post(1, false);
    post(0, true);
    a.run();
    EXPECT_EQ(outcomes(), "es");
    post(2, false);
    post(0, true);
    a.run();
    EXPECT_EQ(outcomes(), "ef");
    EXPECT_EQ(a.record().state, qp_state::error);
}

TEST_F(dc_streams, the_same_channel_counts_once)
{
    a.record().dc.log_errored = 2;
    post(1, false);
    a.run();
    post(1, false);
    post(1, true);
    a.run();
    EXPECT_EQ(outcomes(), "eff");
    EXPECT_EQ(a.record().state, qp_state::rts);
}

TEST_F(dc_streams, numbers_beyond_the_last_channel_start_again)
{
    post(5, false);
    post(1, true);
    post(4, true);
    a.run();
    EXPECT_EQ(outcomes(), "efs");
}

TEST_F(dc_streams, without_channels_the_first_error_fails_all)
{
    a.record().dc.log_streams = 0;
    post(1, false);
    post(2, true);
    a.run();
    EXPECT_EQ(outcomes(), "ef");
    EXPECT_EQ(a.record().state, qp_state::error);
}

TEST_F(dc_streams, unreported_requests_of_a_channel_in_error)
{
    using prm::wqe_completion;
    post(1, false);
    for (const auto when : {wqe_completion::on_error, wqe_completion::on_first_error}) {
        a.post(work_request(wqe_opcode::rdma_write)
                   .stream(1)
                   .completion(when)
                   .target(there.lid(), there.number, dc_access_key)
                   .remote(address_of(target), target_key)
                   .data(source_key, address_of(source), 8));
    }
    a.run();
    EXPECT_EQ(outcomes(), "ef") << "on_first_error: the error before it was the first one";
    EXPECT_EQ(a.record().send.consumed, a.produced);
}

} // namespace

} // namespace ucxl::softhca::test
