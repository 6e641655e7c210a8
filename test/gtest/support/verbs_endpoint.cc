#include "verbs_endpoint.h"

#include "verbs.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace ucxl::test
{
namespace
{

ibv_context* open_first()
{
    ibv_device** const list    = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
    ibv_context* const context = made(ibv_open_device(made(list[0], "a device")), "ibv_open_device");
    ibv_free_device_list(list);
    return context;
}

} // namespace

void die(const std::string& reason)
{
    throw std::runtime_error(reason);
}

double seconds_now()
{
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

endpoint::endpoint(std::size_t buffer_bytes, unsigned depth, bool events) : _buffer(buffer_bytes)
{
    _context = open_first();
    _pd      = made(ibv_alloc_pd(_context), "ibv_alloc_pd");
    if (events) {
        _channel = made(ibv_create_comp_channel(_context), "ibv_create_comp_channel");
    }
    _cq = made(ibv_create_cq(_context, static_cast<int>(4 * depth), nullptr, _channel, 0), "ibv_create_cq");
    _mr = made(ibv_reg_mr(_pd, _buffer.data(), _buffer.size(), IBV_ACCESS_LOCAL_WRITE | remote_access), "ibv_reg_mr");
    ibv_qp_init_attr wanted{};
    wanted.send_cq = _cq;
    wanted.recv_cq = _cq;
    wanted.cap     = {
            .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    wanted.qp_type = IBV_QPT_RC;
    _qp            = made(ibv_create_qp(_pd, &wanted), "ibv_create_qp");
}

endpoint::~endpoint()
{
    ibv_destroy_qp(_qp);
    ibv_dereg_mr(_mr);
    ibv_destroy_cq(_cq);
    if (_channel != nullptr) {
        ibv_destroy_comp_channel(_channel);
    }
    ibv_dealloc_pd(_pd);
    ibv_close_device(_context);
}

address endpoint::own() const
{
    ibv_port_attr port{};
    worked(ibv_query_port(_context, 1, &port), "ibv_query_port");
    return {.qpn    = _qp->qp_num,
            .rkey   = _mr->rkey,
            .buffer = reinterpret_cast<std::uint64_t>(_buffer.data()),
            .lid    = port.lid};
}

void endpoint::connect(const address& peer, std::uint8_t timeout_exponent)
{
    _peer = peer;
    connect_queue_pair(_qp, {.peer = peer.qpn, .lid = peer.lid, .timeout_exponent = timeout_exponent});
}

ibv_sge endpoint::piece(std::size_t offset, std::size_t length)
{
    return {.addr   = reinterpret_cast<std::uint64_t>(_buffer.data() + offset),
            .length = static_cast<std::uint32_t>(length),
            .lkey   = _mr->lkey};
}

bool endpoint::try_post(ibv_wr_opcode opcode, std::size_t local, std::size_t remote, std::size_t length,
                        std::uint64_t id)
{
    ibv_sge local_piece = piece(local, length);
    ibv_send_wr request{};
    request.wr_id      = id;
    request.sg_list    = &local_piece;
    request.num_sge    = 1;
    request.opcode     = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic = {.remote_addr = _peer.buffer + remote, .compare_add = 1, .swap = 0, .rkey = _peer.rkey};
    } else {
        request.wr.rdma = {.remote_addr = _peer.buffer + remote, .rkey = _peer.rkey};
    }
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(_qp, &request, &bad) == 0;
}

void endpoint::write(std::size_t from, std::size_t to, std::size_t length, std::uint64_t id)
{
    if (!try_post(IBV_WR_RDMA_WRITE, from, to, length, id)) {
        die("posting a write failed");
    }
}

void endpoint::read(std::size_t into, std::size_t from, std::size_t length, std::uint64_t id)
{
    if (!try_post(IBV_WR_RDMA_READ, into, from, length, id)) {
        die("posting a read failed");
    }
}

void endpoint::fetch_add(std::size_t into, std::size_t at, std::uint64_t id)
{
    if (!try_post(IBV_WR_ATOMIC_FETCH_AND_ADD, into, at, sizeof(std::uint64_t), id)) {
        die("posting a fetch-and-add failed");
    }
}

void endpoint::receive(std::size_t into, std::size_t length, std::uint64_t id)
{
    ibv_sge local_piece = piece(into, length);
    ibv_recv_wr request{};
    request.wr_id    = id;
    request.sg_list  = &local_piece;
    request.num_sge  = 1;
    ibv_recv_wr* bad = nullptr;
    worked(ibv_post_recv(_qp, &request, &bad), "ibv_post_recv");
}

void endpoint::await_one()
{
    ibv_wc found{};
    int count = 0;
    while ((count = ibv_poll_cq(_cq, 1, &found)) == 0) {
    }
    if (count < 0 || found.status != IBV_WC_SUCCESS) {
        die(count < 0 ? "ibv_poll_cq failed" : ibv_wc_status_str(found.status));
    }
}

std::optional<ibv_wc> endpoint::completion(double seconds)
{
    const double until = seconds_now() + seconds;
    do {
        ibv_wc found{};
        const int count = ibv_poll_cq(_cq, 1, &found);
        if (count < 0) {
            die("ibv_poll_cq failed");
        }
        if (count == 1) {
            return found;
        }
    } while (seconds_now() < until);
    return std::nullopt;
}

void endpoint::finish_one()
{
    const auto done = completion(20);
    if (!done) {
        die("no completion within 20 s");
    }
    if (done->status != IBV_WC_SUCCESS) {
        die(std::string("completion: ") + ibv_wc_status_str(done->status));
    }
}

} // namespace ucxl::test
