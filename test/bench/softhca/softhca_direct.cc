#include "softhca_direct.h"

#include <atomic>
#include <cstring>

namespace ucxl::bench
{

using test::address;
using test::die;

namespace
{

constexpr std::size_t message_bytes = 8;
constexpr int send_counter          = 1; // of the doorbell record's two

struct write_request {
    mlx5_wqe_ctrl_seg control;
    mlx5_wqe_raddr_seg remote;
    mlx5_wqe_data_seg data;
};
constexpr std::uint8_t request_units = sizeof(write_request) / 16;

} // namespace

direct_queue::direct_queue(test::endpoint& of) : _number(of.queue_pair()->qp_num)
{
    mlx5dv_obj both{};
    both.qp.in  = of.queue_pair();
    both.qp.out = &_queue;
    both.cq.in  = of.queue();
    both.cq.out = &_completions;
    if (mlx5dv_init_obj(&both, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) != 0) {
        die("mlx5dv_init_obj failed: not an mlx5 device");
    }
}

void direct_queue::store_request(const address& own, const address& peer)
{
    auto* const place = static_cast<std::byte*>(_queue.sq.buf) + _posted % _queue.sq.wqe_cnt * _queue.sq.stride;
    write_request request{};
    mlx5dv_set_ctrl_seg(&request.control, _posted, MLX5_OPCODE_RDMA_WRITE, 0, _number, MLX5_WQE_CTRL_CQ_UPDATE,
                        request_units, 0, 0);
    request.remote = {.raddr = htobe64(peer.buffer), .rkey = htobe32(peer.rkey), .reserved = 0};
    mlx5dv_set_data_seg(&request.data, message_bytes, own.rkey, own.buffer);
    std::memcpy(place, &request, sizeof(request));
    ++_posted;
    std::atomic_thread_fence(std::memory_order_release);
    std::atomic_ref(_queue.dbrec[send_counter]).store(htobe32(_posted), std::memory_order_release);
    ring_doorbell(place);
}

void direct_queue::ring_doorbell(const void* control)
{
    std::uint64_t value = 0;
    std::memcpy(&value, control, sizeof(value));
    std::atomic_ref(*static_cast<std::uint64_t*>(_queue.bf.reg)).store(value, std::memory_order_release);
}

void direct_queue::wait()
{
    auto* const entry = static_cast<std::byte*>(_completions.buf) +
                        (_consumed % _completions.cqe_cnt + 1) * _completions.cqe_size - sizeof(mlx5_cqe64);
    auto* const found        = reinterpret_cast<mlx5_cqe64*>(entry);
    const std::uint8_t owner = (_consumed / _completions.cqe_cnt) & 1;
    std::uint8_t op_own      = 0;
    do {
        op_own = std::atomic_ref(found->op_own).load(std::memory_order_acquire);
    } while (op_own >> 4 == MLX5_CQE_INVALID || (op_own & MLX5_CQE_OWNER_MASK) != owner);
    if (op_own >> 4 != MLX5_CQE_REQ) {
        die("a write by a queue pair taken apart failed");
    }
    ++_consumed;
    std::atomic_ref(_completions.dbrec[0]).store(htobe32(_consumed & 0xffffff), std::memory_order_release);
}

void direct_queue::write_and_wait(const address& own, const address& peer)
{
    store_request(own, peer);
    wait();
}

} // namespace ucxl::bench
