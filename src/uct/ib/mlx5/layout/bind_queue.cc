#include "bind_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "prm/wqe.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::chrono::seconds patience{30};

constexpr std::uint32_t inline_bytes = 832; // what makes room for requests of nearly the longest length

// A request of an RC queue pair holds at least the control and address segments and the inline data.
constexpr std::size_t longest_request(std::size_t inline_room)
{
    return std::min(max_request_bytes, (32 + inline_room) / 64 * 64);
}

bool has_link_layer_addresses(const ibv_port_attr& port)
{
    return port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

} // namespace

void make_signaled(request_bytes& request)
{
    const prm::view<prm::wqe_control_segment> control(std::span(request.bytes).first<prm::wqe_unit_bytes>());
    control.put<prm::wqe_completion::always>(prm::wqe_control_segment::completion);
}

outcome<void> post_raw(ibv_qp* qp, std::span<const request_bytes> requests, std::uint64_t wr_id)
{
    ibv_qp_ex* const extended = ibv_qp_to_qp_ex(qp);
    mlx5dv_qp_ex* const raw   = extended == nullptr ? nullptr : mlx5dv_qp_ex_from_ibv_qp_ex(extended);
    if (raw == nullptr || raw->wr_raw_wqe == nullptr) {
        return failed(UCS_ERR_UNSUPPORTED, "the queue pair was not created for raw work requests");
    }
    ibv_wr_start(extended);
    for (const request_bytes& request : requests) {
        extended->wr_id    = wr_id;
        extended->wr_flags = 0;
        mlx5dv_wr_raw_wqe(raw, request.bytes.data());
    }
    if (const int error = ibv_wr_complete(extended); error != 0) {
        return error == ENOMEM ? failed(UCS_ERR_NO_RESOURCE,
                                        std::format("no room for {} requests in the send queue", requests.size()))
                               : refused("posting bind requests", error);
    }
    return {};
}

outcome<bind_queue> bind_queue::open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth)
{
    bind_queue queue;
    queue._pd    = pd;
    queue._port  = port;
    queue._depth = depth;
    if (auto made = queue.make(); !made) {
        return std::unexpected(std::move(made.error()));
    }
    return queue;
}

outcome<void> bind_queue::make()
{
    _qp.reset();
    _cq.reset(ibv_create_cq(_pd->context, static_cast<int>(_depth), nullptr, nullptr, 0));
    if (_cq == nullptr) {
        return refused("a completion queue for binding");
    }
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type             = IBV_QPT_RC;
    wanted.send_cq             = _cq.get();
    wanted.recv_cq             = _cq.get();
    wanted.cap.max_send_wr     = _depth;
    wanted.cap.max_send_sge    = 1;
    wanted.cap.max_inline_data = inline_bytes;
    wanted.pd                  = _pd;
    wanted.comp_mask           = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags      = IBV_QP_EX_WITH_RDMA_WRITE;
    mlx5dv_qp_init_attr raw{};
    raw.comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
    raw.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE;
    _qp.reset(mlx5dv_create_qp(_pd->context, &wanted, &raw));
    if (_qp == nullptr) {
        return refused("a queue pair for binding");
    }
    _max_request = longest_request(wanted.cap.max_inline_data);
    return connect();
}

outcome<void> bind_queue::connect()
{
    ibv_port_attr port{};
    if (const int error = ibv_query_port(_pd->context, _port, &port); error != 0) {
        return refused("the port of the bind queue", error);
    }
    ibv_qp_attr attr{};
    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = _port;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    int error = ibv_modify_qp(_qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error != 0) {
        return refused("the bind queue to INIT", error);
    }
    attr                    = {};
    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = port.active_mtu;
    attr.dest_qp_num        = _qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer      = 12;
    attr.ah_attr.port_num   = _port;
    attr.ah_attr.dlid       = port.lid;
    if (!has_link_layer_addresses(port)) {
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.hop_limit = 1;
        if (ibv_query_gid(_pd->context, _port, 0, &attr.ah_attr.grh.dgid) != 0) {
            return refused("the address of the bind queue's port");
        }
    }
    error = ibv_modify_qp(_qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error != 0) {
        return refused("the bind queue to RTR", error);
    }
    attr               = {};
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = 14;
    attr.retry_cnt     = 7;
    attr.rnr_retry     = 7;
    attr.max_rd_atomic = 1;
    constexpr int ready =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    error = ibv_modify_qp(_qp.get(), &attr, ready);
    return error == 0 ? outcome<void>() : refused("the bind queue to RTS", error);
}

outcome<void> bind_queue::post(std::span<request_bytes> requests)
{
    make_signaled(requests.back());
    return post_raw(_qp.get(), requests, requests.size());
}

outcome<void> bind_queue::wait()
{
    ibv_wc completion{};
    int found = 0;
    // A device that died answers nothing at all.
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (unsigned polls = 1; found == 0; ++polls) {
        found = ibv_poll_cq(_cq.get(), 1, &completion);
        if (found == 0 && polls % 4096 == 0 && std::chrono::steady_clock::now() > deadline) {
            return failed(UCS_ERR_TIMED_OUT, "a bind request did not complete");
        }
    }
    if (found < 0) {
        return refused("polling for bind requests", -found);
    }
    if (completion.status != IBV_WC_SUCCESS) {
        return failed(UCS_ERR_IO_ERROR, std::format("a bind request failed: {} (vendor syndrome 0x{:x})",
                                                    ibv_wc_status_str(completion.status), completion.vendor_err));
    }
    return {};
}

outcome<void> bind_queue::execute(std::span<request_bytes> requests)
{
    while (!requests.empty()) {
        const auto batch   = requests.first(std::min<std::size_t>(requests.size(), _depth));
        outcome<void> done = post(batch);
        if (done) {
            done = wait();
        }
        if (!done) {
            // What is left of the batch was flushed, or cannot be told apart: a new queue has none of it.
            if (auto again = make(); !again) {
                return failed(again.error().status,
                              std::format("{}; and no new queue: {}", done.error().message, again.error().message));
            }
            return done;
        }
        requests = requests.subspan(batch.size());
    }
    return {};
}

} // namespace ucxl::mlx5
