#include "dc_queues.h"

#include "verbs.h"

#include <chrono>
#include <memory>

namespace ucxl::test
{

namespace
{

constexpr std::chrono::seconds patience{30};

ibv_qp* create(ibv_pd* pd, ibv_cq* cq, ibv_srq* srq, const mlx5dv_dc_init_attr& dynamic, bool has_streams)
{
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq   = cq;
    wanted.recv_cq   = cq;
    wanted.srq       = srq;
    wanted.qp_type   = IBV_QPT_DRIVER;
    wanted.pd        = pd;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    mlx5dv_qp_init_attr typed{};
    typed.comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC | (has_streams ? MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS : 0);
    typed.dc_init_attr = dynamic;
    if (dynamic.dc_type == MLX5DV_DCTYPE_DCI) {
        wanted.cap = {.max_send_wr = 16, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0, .max_inline_data = 0};
        wanted.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
        wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    }
    return made(mlx5dv_create_qp(pd->context, &wanted, &typed), "mlx5dv_create_qp of a dynamic connection");
}

ibv_port_attr port_of(ibv_context* context)
{
    ibv_port_attr port{};
    worked(ibv_query_port(context, 1, &port), "ibv_query_port");
    return port;
}

// Ports of Ethernet are reached by their addresses only.
ibv_ah_attr address_of(ibv_context* context, const dc_route& route)
{
    const ibv_port_attr port = port_of(context);
    ibv_ah_attr attr{};
    attr.port_num  = 1;
    attr.dlid      = route.lid.value_or(port.lid);
    attr.is_global = route.gid.has_value() || port.link_layer != IBV_LINK_LAYER_INFINIBAND ? 1 : 0;
    if (attr.is_global != 0) {
        attr.grh.hop_limit = 1;
        if (route.gid) {
            attr.grh.dgid = *route.gid;
        } else {
            worked(ibv_query_gid(context, 1, 0, &attr.grh.dgid), "ibv_query_gid");
        }
    }
    return attr;
}

} // namespace

ibv_srq* create_receives(ibv_pd* pd)
{
    ibv_srq_init_attr wanted{};
    wanted.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
    return made(ibv_create_srq(pd, &wanted), "ibv_create_srq");
}

void post_receive(ibv_srq* receives, ibv_sge into)
{
    ibv_recv_wr request{};
    request.sg_list  = &into;
    request.num_sge  = 1;
    ibv_recv_wr* bad = nullptr;
    worked(ibv_post_srq_recv(receives, &request, &bad), "ibv_post_srq_recv");
}

dc_target::dc_target(ibv_pd* pd, ibv_cq* cq) : _srq(create_receives(pd))
{
    mlx5dv_dc_init_attr dynamic{};
    dynamic.dc_type        = MLX5DV_DCTYPE_DCT;
    dynamic.dct_access_key = dc_access_key;
    _qp                    = create(pd, cq, _srq, dynamic, false);
    ibv_qp_attr attributes{};
    attributes.qp_state        = IBV_QPS_INIT;
    attributes.port_num        = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
           "DCT to INIT");
    const ibv_port_attr port         = port_of(pd->context);
    attributes.qp_state              = IBV_QPS_RTR;
    attributes.path_mtu              = port.active_mtu;
    attributes.min_rnr_timer         = 1;
    attributes.ah_attr.port_num      = 1;
    attributes.ah_attr.is_global     = port.link_layer != IBV_LINK_LAYER_INFINIBAND ? 1 : 0;
    attributes.ah_attr.grh.hop_limit = 1;
    worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU),
           "DCT to RTR");
}

dc_target::~dc_target()
{
    ibv_destroy_qp(_qp);
    ibv_destroy_srq(_srq);
}

dc_initiator::dc_initiator(ibv_pd* pd, ibv_cq* cq, const mlx5dv_dci_streams& streams)
    : _pd(pd), _cq(cq), _has_streams(streams.log_num_concurent != 0)
{
    mlx5dv_dc_init_attr dynamic{};
    dynamic.dc_type     = MLX5DV_DCTYPE_DCI;
    dynamic.dci_streams = streams;
    _qp                 = create(pd, cq, nullptr, dynamic, _has_streams);
    to_init();
    to_rtr();
    to_rts();
}

dc_initiator::~dc_initiator()
{
    ibv_destroy_qp(_qp);
}

ibv_qp_state dc_initiator::state() const
{
    ibv_qp_attr attributes{};
    ibv_qp_init_attr unused{};
    worked(ibv_query_qp(_qp, &attributes, IBV_QP_STATE, &unused), "ibv_query_qp");
    return attributes.qp_state;
}

void dc_initiator::to_init()
{
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RESET;
    worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE), "DCI to RESET");
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), "DCI to INIT");
}

void dc_initiator::to_rtr()
{
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = port_of(_pd->context).active_mtu;
    worked(ibv_modify_qp(_qp, &attributes, IBV_QP_STATE | IBV_QP_PATH_MTU), "DCI to RTR");
}

void dc_initiator::to_rts()
{
    ibv_qp_attr attributes{};
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

void dc_initiator::reconnect()
{
    to_init();
    to_rtr();
    to_rts();
}

template <typename Fill>
ibv_wc_status dc_initiator::execute(const dc_route& route, const ibv_sge& from, const Fill& fill)
{
    ibv_ah_attr address = address_of(_pd->context, route);
    const std::unique_ptr<ibv_ah, int (*)(ibv_ah*)> ah(made(ibv_create_ah(_pd, &address), "ibv_create_ah"),
                                                       ibv_destroy_ah);
    ibv_qp_ex* const posting  = ibv_qp_to_qp_ex(_qp);
    mlx5dv_qp_ex* const typed = mlx5dv_qp_ex_from_ibv_qp_ex(posting);
    ibv_wr_start(posting);
    posting->wr_id    = 1;
    posting->wr_flags = IBV_SEND_SIGNALED;
    fill(posting);
    if (_has_streams) {
        mlx5dv_wr_set_dc_addr_stream(typed, ah.get(), route.target, route.access_key, route.stream);
    } else {
        mlx5dv_wr_set_dc_addr(typed, ah.get(), route.target, route.access_key);
    }
    ibv_wr_set_sge(posting, from.lkey, from.addr, from.length);
    worked(ibv_wr_complete(posting), "ibv_wr_complete");
    const auto deadline = std::chrono::steady_clock::now() + patience;
    ibv_wc done{};
    while (ibv_poll_cq(_cq, 1, &done) == 0) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error("a request over a dynamic connection did not complete");
        }
    }
    return done.status;
}

ibv_wc_status dc_initiator::write(const dc_route& route, const ibv_sge& from, std::uint64_t remote, std::uint32_t rkey)
{
    return execute(route, from, [&](ibv_qp_ex* posting) { ibv_wr_rdma_write(posting, rkey, remote); });
}

ibv_wc_status dc_initiator::send(const dc_route& route, const ibv_sge& from)
{
    return execute(route, from, ibv_wr_send);
}

} // namespace ucxl::test
