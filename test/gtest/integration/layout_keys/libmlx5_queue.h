// A queue pair for the calls by which libmlx5 binds keys, and a key for them.
//
// Example: libmlx5_queue queue(pd, MLX5DV_QP_EX_WITH_MR_LIST, 4); mlx5dv_wr_mr_list(..., queue.key(), ...);
#pragma once

#include <cstdint>

#include <infiniband/mlx5dv.h>

#include "support/verbs.h"

namespace ucxl::test
{

class libmlx5_queue
{
public:
    // `calls`: mlx5dv_qp_create_send_ops_flags. The queue pair is not connected.
    libmlx5_queue(ibv_pd* pd, std::uint64_t calls, std::uint16_t max_entries)
    {
        _cq = made(ibv_create_cq(pd->context, 16, nullptr, nullptr, 0), "completion queue");
        ibv_qp_init_attr_ex wanted{};
        wanted.qp_type             = IBV_QPT_RC;
        wanted.send_cq             = _cq;
        wanted.recv_cq             = _cq;
        wanted.cap.max_send_wr     = 16;
        wanted.cap.max_send_sge    = 1;
        wanted.cap.max_inline_data = 512;
        wanted.pd                  = pd;
        wanted.comp_mask           = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.send_ops_flags      = IBV_QP_EX_WITH_RDMA_WRITE;
        mlx5dv_qp_init_attr typed{};
        typed.comp_mask      = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
        typed.send_ops_flags = calls;
        _qp                  = made(mlx5dv_create_qp(pd->context, &wanted, &typed), "queue pair");
        mlx5dv_mkey_init_attr key{};
        key.pd           = pd;
        key.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
        key.max_entries  = max_entries;
        _key             = made(mlx5dv_create_mkey(&key), "key");
    }

    ~libmlx5_queue()
    {
        mlx5dv_destroy_mkey(_key);
        ibv_destroy_qp(_qp);
        ibv_destroy_cq(_cq);
    }

    libmlx5_queue(const libmlx5_queue&)            = delete;
    libmlx5_queue& operator=(const libmlx5_queue&) = delete;

    ibv_cq* cq() const { return _cq; }
    ibv_qp* qp() const { return _qp; }
    mlx5dv_mkey* key() const { return _key; }

private:
    ibv_cq* _cq       = nullptr;
    ibv_qp* _qp       = nullptr;
    mlx5dv_mkey* _key = nullptr;
};

} // namespace ucxl::test
