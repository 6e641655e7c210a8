// Dynamic connections of a program on libmlx5: an initiator outlives its targets and its own errors.
#include "scenario.h"

#include "support/verbs.h"
#include "support/verbs_endpoint.h"

#include <infiniband/mlx5dv.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::address;
using ucxl::test::die;
using ucxl::test::endpoint;
using ucxl::test::made;
using ucxl::test::worked;

namespace
{

constexpr std::uint64_t access_key = 0xfedcba9876543210;

ibv_qp* create(endpoint& here, ibv_srq* srq, mlx5dv_dc_type type)
{
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq   = here.queue();
    wanted.recv_cq   = here.queue();
    wanted.srq       = srq;
    wanted.qp_type   = IBV_QPT_DRIVER;
    wanted.pd        = here.domain();
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    mlx5dv_qp_init_attr dynamic{};
    dynamic.comp_mask            = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dynamic.dc_init_attr.dc_type = type;
    if (type == MLX5DV_DCTYPE_DCT) {
        dynamic.dc_init_attr.dct_access_key = access_key;
    } else {
        wanted.cap = {.max_send_wr = 16, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0, .max_inline_data = 0};
        wanted.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
        wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    }
    return made(mlx5dv_create_qp(here.context(), &wanted, &dynamic), "mlx5dv_create_qp");
}

class dc_target
{
public:
    explicit dc_target(endpoint& here)
    {
        ibv_srq_init_attr receives{};
        receives.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
        _srq          = made(ibv_create_srq(here.domain(), &receives), "ibv_create_srq");
        _qp           = create(here, _srq, MLX5DV_DCTYPE_DCT);
        ibv_qp_attr attributes{};
        attributes.qp_state        = IBV_QPS_INIT;
        attributes.port_num        = 1;
        attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
               "DCT to INIT");
        attributes.qp_state         = IBV_QPS_RTR;
        attributes.path_mtu         = IBV_MTU_4096;
        attributes.min_rnr_timer    = 1;
        attributes.ah_attr.port_num = 1;
        worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU),
               "DCT to RTR");
        _place     = here.own();
        _place.qpn = _qp->qp_num;
    }
    ~dc_target()
    {
        ibv_destroy_qp(_qp);
        ibv_destroy_srq(_srq);
    }
    dc_target(const dc_target&)            = delete;
    dc_target& operator=(const dc_target&) = delete;

    const address& place() const { return _place; }

private:
    ibv_srq* _srq;
    ibv_qp* _qp;
    address _place{};
};

class dc_initiator
{
public:
    explicit dc_initiator(endpoint& here) : _here(here), _qp(create(here, nullptr, MLX5DV_DCTYPE_DCI))
    {
        ibv_ah_attr port{};
        port.dlid     = here.own().lid;
        port.port_num = 1;
        _ah           = made(ibv_create_ah(here.domain(), &port), "ibv_create_ah");
        connect();
    }
    ~dc_initiator()
    {
        ibv_destroy_qp(_qp);
        ibv_destroy_ah(_ah);
    }
    dc_initiator(const dc_initiator&)            = delete;
    dc_initiator& operator=(const dc_initiator&) = delete;

    ibv_wc_status write(const address& to, std::uint64_t key = access_key)
    {
        ibv_qp_ex* const posting = ibv_qp_to_qp_ex(_qp);
        const ibv_sge data       = _here.piece(0, 64);
        ibv_wr_start(posting);
        posting->wr_id    = 1;
        posting->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(posting, to.rkey, to.buffer + 1024);
        mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(posting), _ah, to.qpn, key);
        ibv_wr_set_sge(posting, data.lkey, data.addr, data.length);
        worked(ibv_wr_complete(posting), "ibv_wr_complete");
        const auto done = _here.completion(30);
        if (!done) {
            die("no completion within 30 s");
        }
        return done->status;
    }

    // Nobody answers: the initiator fails, and works again after a reset.
    void expect_no_answer(const address& to, std::uint64_t key, const char* why)
    {
        const ibv_wc_status status = write(to, key);
        if (status != IBV_WC_RETRY_EXC_ERR) {
            die(std::string(why) + ": " + ibv_wc_status_str(status));
        }
        ibv_qp_attr attributes{};
        ibv_qp_init_attr unused{};
        worked(ibv_query_qp(_qp, &attributes, IBV_QP_STATE, &unused), "ibv_query_qp");
        if (attributes.qp_state != IBV_QPS_ERR) {
            die(std::string(why) + ": the initiator has not failed");
        }
        attributes.qp_state = IBV_QPS_RESET;
        worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE), "DCI to RESET");
        connect();
    }

    void expect_success(const address& to, const char* why)
    {
        if (const ibv_wc_status status = write(to); status != IBV_WC_SUCCESS) {
            die(std::string(why) + ": " + ibv_wc_status_str(status));
        }
    }

private:
    void connect()
    {
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = 1;
        worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), "DCI to INIT");
        attributes.qp_state = IBV_QPS_RTR;
        attributes.path_mtu = IBV_MTU_4096;
        worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PATH_MTU), "DCI to RTR");
        attributes.qp_state      = IBV_QPS_RTS;
        attributes.timeout       = 8;
        attributes.retry_cnt     = 2;
        attributes.rnr_retry     = 7;
        attributes.max_rd_atomic = 1;
        worked(ibv_modify_qp(_qp, &attributes,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC),
               "DCI to RTS");
    }

    endpoint& _here;
    ibv_qp* _qp;
    ibv_ah* _ah = nullptr;
};

} // namespace

int initiator_outlives_targets(int)
{
    int up[2];
    if (::pipe(up) != 0) {
        die("pipe");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        endpoint there(4096);
        const dc_target target(there);
        if (::write(up[1], &target.place(), sizeof(address)) != sizeof(address)) {
            die("write");
        }
        while (true) {
            ::pause();
        }
    }
    address far{};
    if (::read(up[0], &far, sizeof(far)) != sizeof(far)) {
        die("the target did not start");
    }
    endpoint here(4096);
    auto near = std::make_unique<dc_target>(here);
    dc_initiator initiator(here);
    std::memset(here.buffer(), 0x5a, 64);
    initiator.expect_success(far, "a target in another process");
    initiator.expect_success(near->place(), "a target in this process");
    if (std::memcmp(here.buffer(), here.buffer() + 1024, 64) != 0) {
        die("other bytes arrived");
    }
    initiator.expect_no_answer(near->place(), access_key + 1, "a wrong access key");
    initiator.expect_success(near->place(), "after a wrong access key");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    initiator.expect_no_answer(far, access_key, "a killed process");
    initiator.expect_success(near->place(), "after a killed process");
    const address gone = near->place();
    near.reset();
    initiator.expect_no_answer(gone, access_key, "a destroyed target");
    return 0;
}

} // namespace ucxl::softhca::test
