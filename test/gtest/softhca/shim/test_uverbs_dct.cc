// DC targets as queue pairs of verbs: they exist for the device only from the state RTR on.
#include <gtest/gtest.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "verbs_maker.h"

namespace ucxl::softhca::test
{
namespace
{

constexpr std::uint32_t to_init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr std::uint32_t to_rtr  = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU;

class uverbs_dct : public testing::Test
{
protected:
    ib_uverbs_modify_qp request_for(std::uint32_t state, std::uint32_t attributes) const
    {
        ib_uverbs_modify_qp request{};
        request.qp_handle          = dct.handle;
        request.attr_mask          = attributes;
        request.qp_state           = static_cast<std::uint8_t>(state);
        request.port_num           = 1;
        request.qp_access_flags    = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        request.path_mtu           = IBV_MTU_1024;
        request.min_rnr_timer      = 13;
        request.dest.port_num      = 1;
        request.dest.is_global     = 1;
        request.dest.hop_limit     = 64;
        request.dest.traffic_class = 5;
        request.dest.flow_label    = 0x12345;
        return request;
    }

    // As libmlx5 sends it: with room for the number of the target.
    int modify(const ib_uverbs_modify_qp& base, mlx5_ib_modify_qp_resp* driver = nullptr)
    {
        ib_uverbs_ex_modify_qp request{};
        request.base = base;
        uverbs_request call(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
        call.constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP)
            .in(UVERBS_ATTR_CORE_IN, request)
            .out<ib_uverbs_ex_modify_qp_resp>(UVERBS_ATTR_CORE_OUT)
            .in(UVERBS_ATTR_UHW_IN, mlx5_ib_modify_qp{})
            .out<mlx5_ib_modify_qp_resp>(UVERBS_ATTR_UHW_OUT);
        const int error = call.run(maker.fd);
        if (driver != nullptr) {
            *driver = call.answer<mlx5_ib_modify_qp_resp>(UVERBS_ATTR_UHW_OUT);
        }
        return error;
    }

    std::uint32_t make()
    {
        mlx5_ib_modify_qp_resp answer{};
        EXPECT_EQ(modify(request_for(IBV_QPS_INIT, to_init)), 0);
        EXPECT_EQ(modify(request_for(IBV_QPS_RTR, to_rtr), &answer), 0);
        return answer.dctn;
    }

    std::uint32_t live() { return machine.memory().qps.live; }

    int query(std::uint32_t attributes, ib_uverbs_query_qp_resp& found)
    {
        ib_uverbs_query_qp request{};
        request.qp_handle = dct.handle;
        request.attr_mask = attributes;
        return write_command(program, maker.fd, IB_USER_VERBS_CMD_QUERY_QP, request, found);
    }

    test_machine machine;
    kernel_program program{machine};
    verbs_maker maker{program};
    verbs_maker::made cq  = maker.make_cq(15);
    verbs_maker::made srq = maker.make_srq(15);
    verbs_maker::made dct = maker.make_qp(IB_UVERBS_QPT_DRIVER, cq, cq, &srq, MLX5_QP_FLAG_TYPE_DCT);
};

TEST_F(uverbs_dct, the_device_makes_it_in_the_state_rtr)
{
    EXPECT_EQ(dct.error, 0);
    EXPECT_EQ(dct.number, 0u);
    EXPECT_EQ(live(), 0u);
    EXPECT_EQ(modify(request_for(IBV_QPS_INIT, to_init)), 0);
    EXPECT_EQ(live(), 0u);
    mlx5_ib_modify_qp_resp answer{};
    EXPECT_EQ(modify(request_for(IBV_QPS_RTR, to_rtr), &answer), 0);
    ASSERT_EQ(live(), 1u);
    EXPECT_EQ(answer.response_length, sizeof(answer));
    const qp_record& made = machine.memory().qps.records[answer.dctn];
    EXPECT_TRUE(made.dc.target);
    EXPECT_EQ(made.dc.access_key, 0x1122334455667788u);
    EXPECT_EQ(made.srq, srq.number);
    EXPECT_EQ(made.receive_cq, cq.number);
    EXPECT_EQ(made.min_rnr_timer, 13);
    EXPECT_TRUE(made.remote_read && made.remote_atomic && !made.remote_write);
}

TEST_F(uverbs_dct, destroying_it_ends_it)
{
    make();
    EXPECT_NE(maker.destroy_srq(srq), 0) << "it is in use";
    ib_uverbs_destroy_qp_resp told{};
    EXPECT_EQ(maker.destroy_qp(dct, told), 0);
    EXPECT_EQ(live(), 0u);
    EXPECT_EQ(maker.destroy_srq(srq), 0);
}

TEST_F(uverbs_dct, destroying_it_before_the_device_has_it)
{
    ib_uverbs_destroy_qp_resp told{};
    EXPECT_EQ(maker.destroy_qp(dct, told), 0);
    EXPECT_EQ(maker.destroy_srq(srq), 0);
}

TEST_F(uverbs_dct, closing_the_device_file_ends_it)
{
    make();
    program.device->closing(maker.fd);
    EXPECT_EQ(live(), 0u);
}

TEST_F(uverbs_dct, exactly_these_attributes)
{
    for (std::uint32_t bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        EXPECT_EQ(modify(request_for(IBV_QPS_INIT, to_init ^ bit)), EINVAL) << bit;
    }
    EXPECT_EQ(modify(request_for(IBV_QPS_INIT, to_init)), 0);
    for (std::uint32_t bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        EXPECT_EQ(modify(request_for(IBV_QPS_RTR, to_rtr ^ bit)), EINVAL) << bit;
    }
    EXPECT_EQ(live(), 0u);
}

TEST_F(uverbs_dct, no_other_changes)
{
    EXPECT_EQ(modify(request_for(IBV_QPS_RTR, to_rtr)), EINVAL);
    make();
    for (const std::uint32_t state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
        EXPECT_EQ(modify(request_for(state, IBV_QP_STATE)), EINVAL) << state;
    }
    EXPECT_EQ(live(), 1u);
}

TEST_F(uverbs_dct, its_number_needs_room_in_the_answer)
{
    EXPECT_EQ(maker.modify_qp(request_for(IBV_QPS_INIT, to_init)), 0);
    EXPECT_EQ(maker.modify_qp(request_for(IBV_QPS_RTR, to_rtr)), EINVAL);
    EXPECT_EQ(live(), 0u);
}

TEST_F(uverbs_dct, what_was_set_is_what_a_query_answers)
{
    ib_uverbs_query_qp_resp found{};
    EXPECT_EQ(query(IBV_QP_STATE, found), EINVAL) << "the device does not know it yet";
    make();
    ASSERT_EQ(query(IBV_QP_STATE | IBV_QP_AV, found), 0);
    EXPECT_EQ(found.qp_state, IBV_QPS_RTR);
    EXPECT_EQ(found.qp_access_flags, std::uint32_t{IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
    EXPECT_EQ(found.path_mtu, IBV_MTU_1024);
    EXPECT_EQ(found.min_rnr_timer, 13);
    EXPECT_EQ(found.port_num, 1);
    EXPECT_EQ(found.dest.hop_limit, 64);
    EXPECT_EQ(found.dest.traffic_class, 5);
    EXPECT_EQ(found.dest.flow_label, 0x12345u);
    EXPECT_EQ(query(IBV_QP_STATE | IBV_QP_TIMEOUT, found), EINVAL) << "a target has none";
}

TEST_F(uverbs_dct, values_out_of_range_are_refused)
{
    ib_uverbs_modify_qp request = request_for(IBV_QPS_INIT, to_init);
    request.port_num            = 2;
    EXPECT_EQ(modify(request), EINVAL);
    EXPECT_EQ(modify(request_for(IBV_QPS_INIT, to_init)), 0);
    request          = request_for(IBV_QPS_RTR, to_rtr);
    request.path_mtu = 6;
    EXPECT_EQ(modify(request), EINVAL);
    request.path_mtu        = IBV_MTU_4096;
    request.dest.sgid_index = 9;
    EXPECT_EQ(modify(request), EINVAL);
    request.dest.sgid_index = 0;
    EXPECT_EQ(modify(request), 0);
}

TEST_F(uverbs_dct, ends_that_do_not_exist)
{
    const auto made = [&](std::uint32_t flags, const verbs_maker::made* shared) {
        return maker.make_qp(IB_UVERBS_QPT_DRIVER, cq, cq, shared, flags).error;
    };
    EXPECT_EQ(made(0, &srq), EINVAL) << "neither end";
    EXPECT_EQ(made(MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI, &srq), EINVAL) << "both ends";
    EXPECT_EQ(made(MLX5_QP_FLAG_TYPE_DCT, nullptr), EINVAL) << "nowhere to receive";
    EXPECT_EQ(made(MLX5_QP_FLAG_TYPE_DCI, &srq), 0);
    EXPECT_EQ(made(MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM, nullptr), 0);
}

} // namespace
} // namespace ucxl::softhca::test
