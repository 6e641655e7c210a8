#include "verbs_pair.h"

#include "verbs.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace ucxl::test
{

namespace
{

ibv_context* open_device()
{
    const char* const wanted = std::getenv("UCXL_TEST_DEVICE");
    int count                = 0;
    ibv_device** const list  = made(ibv_get_device_list(&count), "device list");
    ibv_context* found       = nullptr;
    for (int i = 0; i < count && found == nullptr; ++i) {
        if (wanted != nullptr && std::strcmp(ibv_get_device_name(list[i]), wanted) == 0) {
            mlx5dv_context_attr attr{};
            attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
            found      = made(mlx5dv_open_device(list[i], &attr), "opening the device with DEVX");
        }
    }
    ibv_free_device_list(list);
    return made(found, "no device of the name in UCXL_TEST_DEVICE");
}

ibv_qp* create_queue(ibv_pd* pd, ibv_cq* cq, bool signals_all)
{
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type             = IBV_QPT_RC;
    wanted.send_cq             = cq;
    wanted.recv_cq             = cq;
    wanted.cap.max_send_wr     = 64;
    wanted.cap.max_recv_wr     = 16;
    wanted.cap.max_send_sge    = max_elements;
    wanted.cap.max_recv_sge    = 4;
    wanted.cap.max_inline_data = 832;
    wanted.sq_sig_all          = signals_all ? 1 : 0;
    wanted.pd                  = pd;
    wanted.comp_mask           = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags      = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE;
    mlx5dv_qp_init_attr raw{};
    raw.comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    raw.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE;
    // Otherwise libmlx5 copies short data to the address that it has in its region, where no memory is.
    raw.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    return made(mlx5dv_create_qp(pd->context, &wanted, &raw), "queue pair");
}

} // namespace

verbs_pair::verbs_pair() : _context(open_device()), _pd(made(ibv_alloc_pd(_context), "protection domain"))
{
    begin();
}

verbs_pair::verbs_pair(const beside& other)
    : _is_guest(true), _signals_all(other.signals_all), _context(other.home._context), _pd(other.home._pd)
{
    begin();
}

void verbs_pair::begin()
{
    for (ibv_cq*& cq : _cq) {
        cq = made(ibv_create_cq(_context, 256, nullptr, nullptr, 0), "completion queue");
    }
    reconnect();
}

verbs_pair::~verbs_pair()
{
    close();
    if (!_is_guest) {
        ibv_close_device(_context);
    }
}

bool verbs_pair::close()
{
    if (_pd == nullptr) {
        return true;
    }
    for (ibv_qp* queue : _queue) {
        ibv_destroy_qp(queue);
    }
    for (ibv_cq* cq : _cq) {
        ibv_destroy_cq(cq);
    }
    for (ibv_mr* mr : _registered) {
        ibv_dereg_mr(mr);
    }
    ibv_pd* const done = std::exchange(_pd, nullptr);
    return _is_guest || ibv_dealloc_pd(done) == 0;
}

void verbs_pair::reconnect()
{
    for (int i = 0; i < 2; ++i) {
        if (_queue[i] != nullptr) {
            ibv_destroy_qp(_queue[i]);
        }
        ibv_wc flushed;
        while (ibv_poll_cq(_cq[i], 1, &flushed) > 0) {
        }
        _queue[i] = create_queue(_pd, _cq[i], _signals_all);
    }
    ibv_port_attr port{};
    worked(ibv_query_port(_context, 1, &port), "port");
    for (int i = 0; i < 2; ++i) {
        connect_queue_pair(_queue[i], {.peer = _queue[1 - i]->qp_num, .lid = port.lid, .min_rnr_timer = 1});
    }
}

void verbs_pair::connect_to(std::uint32_t qpn)
{
    ibv_port_attr port{};
    worked(ibv_query_port(_context, 1, &port), "port");
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RESET;
    worked(ibv_modify_qp(qp(), &attributes, IBV_QP_STATE), "RESET");
    connect_queue_pair(qp(), {.peer = qpn, .lid = port.lid, .min_rnr_timer = 1});
}

ibv_mr* verbs_pair::registered(void* buffer, std::size_t length)
{
    _registered.push_back(
        made(ibv_reg_mr(_pd, buffer, length, IBV_ACCESS_LOCAL_WRITE | remote_access), "memory region"));
    return _registered.back();
}

ibv_wc verbs_pair::wait_on(ibv_cq* cq)
{
    ibv_wc found{};
    const auto deadline = std::chrono::steady_clock::now() + _patience;
    for (;;) {
        const int count = ibv_poll_cq(cq, 1, &found);
        if (count == 1) {
            return found;
        }
        if (count < 0 || std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error("a request did not complete");
        }
    }
}

ibv_wc verbs_pair::wait()
{
    return wait_on(_cq[0]);
}

void verbs_pair::post(ibv_send_wr& request)
{
    request.send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    worked(ibv_post_send(qp(), &request, &bad), "post");
}

ibv_wc_status verbs_pair::execute(ibv_send_wr& request)
{
    post(request);
    return wait().status;
}

namespace
{

// Of one element, which has to stay where it is until the request was posted.
ibv_send_wr request_of(ibv_wr_opcode opcode, ibv_sge& element, std::uint64_t remote, std::uint32_t rkey)
{
    ibv_send_wr request{};
    request.sg_list             = &element;
    request.num_sge             = 1;
    request.opcode              = opcode;
    request.wr.rdma.remote_addr = remote;
    request.wr.rdma.rkey        = rkey;
    return request;
}

} // namespace

void verbs_pair::post_write(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey, unsigned flags)
{
    ibv_sge element     = local;
    ibv_send_wr request = request_of(IBV_WR_RDMA_WRITE, element, remote, rkey);
    request.send_flags  = flags;
    post(request);
}

ibv_wc_status verbs_pair::write(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey)
{
    post_write(local, remote, rkey);
    return wait().status;
}

void verbs_pair::post_read(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey)
{
    ibv_sge element     = local;
    ibv_send_wr request = request_of(IBV_WR_RDMA_READ, element, remote, rkey);
    post(request);
}

ibv_wc_status verbs_pair::read(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey)
{
    post_read(local, remote, rkey);
    return wait().status;
}

void verbs_pair::post_receive(const ibv_sge& to)
{
    ibv_sge into = to;
    ibv_recv_wr receive{};
    receive.sg_list  = &into;
    receive.num_sge  = 1;
    ibv_recv_wr* bad = nullptr;
    worked(ibv_post_recv(_queue[1], &receive, &bad), "receive");
}

ibv_wc verbs_pair::wait_for_receive()
{
    return wait_on(_cq[1]);
}

ibv_wc_status verbs_pair::send(const ibv_sge& from, const ibv_sge& to)
{
    post_receive(to);
    ibv_sge element              = from;
    ibv_send_wr request          = request_of(IBV_WR_SEND, element, 0, 0);
    const ibv_wc_status sent     = execute(request);
    const ibv_wc_status received = wait_for_receive().status;
    return sent != IBV_WC_SUCCESS ? sent : received;
}

ibv_wc_status verbs_pair::fetch_add(const ibv_sge& result, std::uint64_t remote, std::uint32_t rkey,
                                    std::uint64_t addend)
{
    ibv_sge element     = result;
    ibv_send_wr request = request_of(IBV_WR_ATOMIC_FETCH_AND_ADD, element, 0, 0);
    request.wr.atomic   = {.remote_addr = remote, .compare_add = addend, .swap = 0, .rkey = rkey};
    return execute(request);
}

} // namespace ucxl::test
