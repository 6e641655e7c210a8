// Compares opcodes, syndromes and masks with those of rdma-core's <infiniband/mlx5dv.h>, at compile time.
#include <infiniband/mlx5dv.h>

#include "prm/cqe.h"
#include "prm/doorbell.h"
#include "prm/umr.h"
#include "prm/wqe.h"

namespace ucxl::prm
{
namespace
{

static_assert(MLX5_SEND_WQE_BB == wqe_block_bytes);
static_assert(MLX5_INVALID_LKEY == invalid_lkey);
static_assert(MLX5_CQ_DOORBELL == uar_cq_doorbell_offset);

template <typename Enum>
constexpr bool is(Enum ours, unsigned theirs)
{
    return std::to_underlying(ours) == theirs;
}

static_assert(is(wqe_opcode::nop, MLX5_OPCODE_NOP) && is(wqe_opcode::send_invalidate, MLX5_OPCODE_SEND_INVAL) &&
              is(wqe_opcode::rdma_write, MLX5_OPCODE_RDMA_WRITE) &&
              is(wqe_opcode::rdma_write_imm, MLX5_OPCODE_RDMA_WRITE_IMM) && is(wqe_opcode::send, MLX5_OPCODE_SEND) &&
              is(wqe_opcode::send_imm, MLX5_OPCODE_SEND_IMM) && is(wqe_opcode::tso, MLX5_OPCODE_TSO) &&
              is(wqe_opcode::rdma_read, MLX5_OPCODE_RDMA_READ) && is(wqe_opcode::atomic_cs, MLX5_OPCODE_ATOMIC_CS) &&
              is(wqe_opcode::atomic_fa, MLX5_OPCODE_ATOMIC_FA) &&
              is(wqe_opcode::atomic_masked_cs, MLX5_OPCODE_ATOMIC_MASKED_CS) &&
              is(wqe_opcode::atomic_masked_fa, MLX5_OPCODE_ATOMIC_MASKED_FA) && is(wqe_opcode::fmr, MLX5_OPCODE_FMR) &&
              is(wqe_opcode::local_invalidate, MLX5_OPCODE_LOCAL_INVAL) &&
              is(wqe_opcode::config_command, MLX5_OPCODE_CONFIG_CMD) && is(wqe_opcode::set_psv, MLX5_OPCODE_SET_PSV) &&
              is(wqe_opcode::umr, MLX5_OPCODE_UMR) && is(wqe_opcode::tag_matching, MLX5_OPCODE_TAG_MATCHING) &&
              is(wqe_opcode::flow_table_access, MLX5_OPCODE_FLOW_TBL_ACCESS) && is(wqe_opcode::mmo, MLX5_OPCODE_MMO));

static_assert(is(cqe_opcode::requester, MLX5_CQE_REQ) && is(cqe_opcode::responder_write_imm, MLX5_CQE_RESP_WR_IMM) &&
              is(cqe_opcode::responder_send, MLX5_CQE_RESP_SEND) &&
              is(cqe_opcode::responder_send_imm, MLX5_CQE_RESP_SEND_IMM) &&
              is(cqe_opcode::responder_send_inv, MLX5_CQE_RESP_SEND_INV) &&
              is(cqe_opcode::resize_cq, MLX5_CQE_RESIZE_CQ) && is(cqe_opcode::no_packet, MLX5_CQE_NO_PACKET) &&
              is(cqe_opcode::signature_error, MLX5_CQE_SIG_ERR) && is(cqe_opcode::requester_error, MLX5_CQE_REQ_ERR) &&
              is(cqe_opcode::responder_error, MLX5_CQE_RESP_ERR) && is(cqe_opcode::invalid, MLX5_CQE_INVALID));

static_assert(is(cqe_syndrome::local_length, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR) &&
              is(cqe_syndrome::local_qp_operation, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR) &&
              is(cqe_syndrome::local_protection, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR) &&
              is(cqe_syndrome::flushed, MLX5_CQE_SYNDROME_WR_FLUSH_ERR) &&
              is(cqe_syndrome::memory_window_bind, MLX5_CQE_SYNDROME_MW_BIND_ERR) &&
              is(cqe_syndrome::bad_response, MLX5_CQE_SYNDROME_BAD_RESP_ERR) &&
              is(cqe_syndrome::local_access, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR) &&
              is(cqe_syndrome::remote_invalid_request, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR) &&
              is(cqe_syndrome::remote_access, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) &&
              is(cqe_syndrome::remote_operation, MLX5_CQE_SYNDROME_REMOTE_OP_ERR) &&
              is(cqe_syndrome::transport_retry_exceeded, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR) &&
              is(cqe_syndrome::rnr_retry_exceeded, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR) &&
              is(cqe_syndrome::remote_aborted, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR));

static_assert(is(umr_mask::len, MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN) &&
              is(umr_mask::start_addr, MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR) &&
              is(umr_mask::sig_err, MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR) &&
              is(umr_mask::bsf_enable, MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE) &&
              is(umr_mask::key, MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY) &&
              is(umr_mask::qpn, MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
              is(umr_mask::local_write, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE) &&
              is(umr_mask::remote_read, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ) &&
              is(umr_mask::remote_write, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE) &&
              is(umr_mask::atomic, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC) &&
              is(umr_mask::free, MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE));

} // namespace
} // namespace ucxl::prm
