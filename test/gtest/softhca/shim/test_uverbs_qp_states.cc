// The states of queue pairs in verbs: every transition with every required attribute left out, against a table written
// from the specification.
#include <gtest/gtest.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "verbs_maker.h"

namespace ucxl::softhca::test
{
namespace
{

struct step {
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t required;
    std::uint32_t optional;
};

const std::vector<step>& steps_of(std::uint8_t type)
{
    static const std::vector<step> rc{
        {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
        {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
        {IBV_QPS_INIT, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
        {IBV_QPS_RTR, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
         IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
        {IBV_QPS_RTS, IBV_QPS_RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    };
    static const std::vector<step> uc{
        rc[0],
        rc[1],
        {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
         IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
        {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
        {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE},
    };
    static const std::vector<step> ud{
        {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
        {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
        {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
        {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
        {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    };
    // DC initiators, from modify_dci_qp_is_ok() of the kernel's driver.
    static const std::vector<step> dci{
        {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT, 0},
        {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT},
        {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV},
        {IBV_QPS_RTR, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
         IBV_QP_MIN_RNR_TIMER},
        {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER},
    };
    switch (type) {
    case IB_UVERBS_QPT_RC:
        return rc;
    case IB_UVERBS_QPT_UC:
        return uc;
    case IB_UVERBS_QPT_DRIVER:
        return dci;
    default:
        return ud;
    }
}

class uverbs_qp_states : public testing::TestWithParam<std::uint8_t>
{
protected:
    ib_uverbs_modify_qp request_for(std::uint32_t from, std::uint32_t to, std::uint32_t attributes) const
    {
        ib_uverbs_modify_qp request{};
        request.qp_handle          = qp.handle;
        request.attr_mask          = attributes | IBV_QP_STATE;
        request.qp_state           = static_cast<std::uint8_t>(to);
        request.cur_qp_state       = static_cast<std::uint8_t>(from);
        request.port_num           = 1;
        request.qp_access_flags    = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
        request.dest.port_num      = 1;
        request.dest.dlid          = 0x17;
        request.dest.sl            = 3;
        request.path_mtu           = IBV_MTU_2048;
        request.dest_qp_num        = 0x123456;
        request.rq_psn             = 0xabcdef;
        request.sq_psn             = 0x654321;
        request.max_dest_rd_atomic = 4;
        request.max_rd_atomic      = 8;
        request.min_rnr_timer      = 12;
        request.timeout            = 14;
        request.retry_cnt          = 7;
        request.rnr_retry          = 6;
        request.qkey               = 0x11223344;
        request.path_mig_state     = IBV_MIG_MIGRATED;
        return request;
    }

    // Moves the queue pair to a state on the shortest way.
    void go_to(std::uint32_t state)
    {
        ASSERT_EQ(maker.modify_qp(request_for(0, IBV_QPS_RESET, 0)), 0);
        for (std::uint32_t now = IBV_QPS_RESET; now < state; now++) {
            for (const step& one : steps_of(GetParam())) {
                if (one.from == now && one.to == now + 1) {
                    ASSERT_EQ(maker.modify_qp(request_for(now, now + 1, one.required)), 0) << now;
                }
            }
        }
    }

    test_machine machine;
    kernel_program program{machine};
    verbs_maker maker{program};
    verbs_maker::made cq = maker.make_cq(15);
    verbs_maker::made qp =
        maker.make_qp(GetParam(), cq, cq, nullptr, GetParam() == IB_UVERBS_QPT_DRIVER ? MLX5_QP_FLAG_TYPE_DCI : 0);
};

TEST_P(uverbs_qp_states, exactly_the_transitions_of_the_specification_exist)
{
    for (std::uint32_t from = IBV_QPS_RESET; from <= IBV_QPS_RTS; from++) {
        for (std::uint32_t to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            std::uint32_t required = 0;
            const bool may_fail    = GetParam() != IB_UVERBS_QPT_DRIVER || from != IBV_QPS_RESET;
            bool exists            = to == IBV_QPS_RESET || (to == IBV_QPS_ERR && may_fail);
            for (const step& one : steps_of(GetParam())) {
                if (one.from == from && one.to == to) {
                    exists   = true;
                    required = one.required;
                }
            }
            go_to(from);
            EXPECT_EQ(maker.modify_qp(request_for(from, to, required)), exists ? 0 : EINVAL) << from << " to " << to;
            EXPECT_EQ(maker.query_qp(qp).qp_state, exists ? to : from);
        }
    }
}

TEST_P(uverbs_qp_states, each_required_attribute_is_required)
{
    for (const step& one : steps_of(GetParam())) {
        for (std::uint32_t bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
            if ((one.required & bit) != 0) {
                go_to(one.from);
                EXPECT_EQ(maker.modify_qp(request_for(one.from, one.to, one.required & ~bit)), EINVAL)
                    << one.from << " to " << one.to << " without " << bit;
            }
        }
    }
}

TEST_P(uverbs_qp_states, each_other_attribute_is_optional_or_refused)
{
    const std::uint32_t not_modelled = IBV_QP_ALT_PATH | IBV_QP_CAP | IBV_QP_EN_SQD_ASYNC_NOTIFY;
    for (const step& one : steps_of(GetParam())) {
        for (std::uint32_t bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
            if ((one.required & bit) != 0 || (not_modelled & bit) != 0) {
                continue;
            }
            // The current state may be given only where it can be unclear.
            const bool doubtful = one.from != IBV_QPS_RESET && one.from != IBV_QPS_INIT;
            const bool allowed  = (one.optional & bit) != 0 && (bit != IBV_QP_CUR_STATE || doubtful);
            go_to(one.from);
            EXPECT_EQ(maker.modify_qp(request_for(one.from, one.to, one.required | bit)), allowed ? 0 : EINVAL)
                << one.from << " to " << one.to << " with " << bit;
        }
    }
}

TEST_P(uverbs_qp_states, what_was_set_is_what_a_query_answers)
{
    go_to(IBV_QPS_RTS);
    const ib_uverbs_query_qp_resp found = maker.query_qp(qp);
    EXPECT_EQ(found.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(found.sq_psn, 0x654321u);
    EXPECT_EQ(found.port_num, 1);
    if (GetParam() == IB_UVERBS_QPT_UD) {
        EXPECT_EQ(found.qkey, 0x11223344u);
        return;
    }
    if (GetParam() == IB_UVERBS_QPT_DRIVER) {
        EXPECT_EQ(found.path_mtu, IBV_MTU_2048);
        EXPECT_EQ(found.max_rd_atomic, 8);
        EXPECT_EQ(found.timeout, 14);
        EXPECT_EQ(found.retry_cnt, 7);
        EXPECT_EQ(found.rnr_retry, 6);
        EXPECT_EQ(found.dest.dlid, 0) << "each request has its own address";
        return;
    }
    EXPECT_EQ(found.dest_qp_num, 0x123456u);
    EXPECT_EQ(found.rq_psn, 0xabcdefu);
    EXPECT_EQ(found.path_mtu, IBV_MTU_2048);
    EXPECT_EQ(found.dest.dlid, 0x17);
    EXPECT_EQ(found.dest.sl, 3);
    EXPECT_EQ(found.dest.is_global, 0);
    if (GetParam() == IB_UVERBS_QPT_RC) {
        EXPECT_EQ(found.max_dest_rd_atomic, 4);
        EXPECT_EQ(found.max_rd_atomic, 8);
        EXPECT_EQ(found.timeout, 14);
        EXPECT_EQ(found.retry_cnt, 7);
        EXPECT_EQ(found.rnr_retry, 6);
        EXPECT_EQ(found.min_rnr_timer, 12);
        EXPECT_EQ(found.qp_access_flags, std::uint32_t{IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE});
    }
}

TEST_P(uverbs_qp_states, values_out_of_range_are_refused)
{
    go_to(IBV_QPS_RESET);
    const step& init = steps_of(GetParam()).front();
    const auto with  = [&](std::uint32_t from, std::uint32_t to, std::uint32_t attributes, auto change) {
        ib_uverbs_modify_qp request = request_for(from, to, attributes);
        change(request);
        return maker.modify_qp(request);
    };
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required, [](auto& r) { r.port_num = 0; }), EINVAL);
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required, [](auto& r) { r.port_num = 2; }), EINVAL);
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required, [](auto& r) { r.pkey_index = 1000; }), EINVAL);
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required, [](auto& r) { r.qp_state = 9; }), EINVAL);
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required, [](auto& r) { r.qp_handle = 9999; }), ENOENT);
    EXPECT_EQ(with(0, IBV_QPS_INIT, init.required | IBV_QP_RATE_LIMIT, [](auto&) {}), EOPNOTSUPP);
    if (GetParam() == IB_UVERBS_QPT_UD) {
        return;
    }
    go_to(IBV_QPS_INIT);
    const std::uint32_t receive = steps_of(GetParam())[2].required | IBV_QP_AV;
    EXPECT_EQ(with(1, IBV_QPS_RTR, receive, [](auto& r) { r.path_mtu = 0; }), EINVAL);
    EXPECT_EQ(with(1, IBV_QPS_RTR, receive, [](auto& r) { r.path_mtu = 6; }), EINVAL);
    EXPECT_EQ(with(1, IBV_QPS_RTR, receive, [](auto& r) { r.dest.port_num = 3; }), EINVAL);
    EXPECT_EQ(with(1, IBV_QPS_RTR, receive,
                   [](auto& r) {
                       r.dest.is_global  = 1;
                       r.dest.sgid_index = 5;
                   }),
              EINVAL);
    if (GetParam() == IB_UVERBS_QPT_RC) {
        EXPECT_EQ(with(1, IBV_QPS_RTR, receive, [](auto& r) { r.max_dest_rd_atomic = 100; }), EINVAL);
    }
    EXPECT_EQ(maker.query_qp(qp).qp_state, IBV_QPS_INIT);
}

TEST_P(uverbs_qp_states, a_peer_gets_no_reads_without_resources_for_them)
{
    if (GetParam() != IB_UVERBS_QPT_RC) {
        GTEST_SKIP() << "only RC has reads";
    }
    go_to(IBV_QPS_INIT);
    ib_uverbs_modify_qp request = request_for(IBV_QPS_INIT, IBV_QPS_RTR, steps_of(GetParam())[2].required);
    request.max_dest_rd_atomic  = 0;
    ASSERT_EQ(maker.modify_qp(request), 0);
    EXPECT_EQ(maker.query_qp(qp).qp_access_flags, std::uint32_t{IBV_ACCESS_REMOTE_WRITE});
}

TEST_P(uverbs_qp_states, paths_do_not_migrate)
{
    if (GetParam() == IB_UVERBS_QPT_UD) {
        GTEST_SKIP() << "datagrams have no path";
    }
    go_to(IBV_QPS_RTS);
    ib_uverbs_modify_qp request = request_for(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE);
    for (const std::uint8_t state : {IBV_MIG_REARM, IBV_MIG_ARMED}) {
        request.path_mig_state = state;
        EXPECT_EQ(maker.modify_qp(request), EINVAL);
    }
    request              = request_for(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ALT_PATH);
    request.alt_port_num = 1;
    EXPECT_EQ(maker.modify_qp(request), EINVAL);
    EXPECT_EQ(maker.query_qp(qp).path_mig_state, IBV_MIG_MIGRATED);
    EXPECT_EQ(maker.query_qp(qp).qp_state, IBV_QPS_RTS);
}

INSTANTIATE_TEST_SUITE_P(services, uverbs_qp_states,
                         testing::Values(IB_UVERBS_QPT_RC, IB_UVERBS_QPT_UC, IB_UVERBS_QPT_UD, IB_UVERBS_QPT_DRIVER),
                         [](const auto& tested) {
                             switch (tested.param) {
                             case IB_UVERBS_QPT_RC:
                                 return "rc";
                             case IB_UVERBS_QPT_UC:
                                 return "uc";
                             case IB_UVERBS_QPT_DRIVER:
                                 return "dci";
                             default:
                                 return "ud";
                             }
                         });

} // namespace
} // namespace ucxl::softhca::test
