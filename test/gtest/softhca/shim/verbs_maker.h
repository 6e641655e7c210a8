// Makes objects of verbs for tests of the kernel's part, as libmlx5 asks for them.
#pragma once

#include "kernel_program.h"

namespace ucxl::softhca::test
{

// A context with a PD, a doorbell page and a channel of asynchronous events. Every make_* returns the handle, and fails
// the test when the kernel's part refuses; every try_* returns the errno.
class verbs_maker
{
public:
    explicit verbs_maker(kernel_program& its_program, unsigned number = 0);

    struct made {
        std::uint32_t handle = 0;
        std::uint32_t number = 0; // CQN, QPN, SRQN, or the key
        int error            = 0;
    };

    made make_mr(std::span<std::byte> memory, std::uint32_t access);
    made try_mr(std::uint64_t address, std::uint64_t length, std::uint64_t iova, std::uint32_t access,
                std::uint32_t in_pd);
    made try_mw(std::uint8_t type);
    made make_cq(std::uint32_t entries, int channel = -1, std::uint64_t user_handle = 1);
    made make_srq(std::uint32_t max_wr);
    made make_qp(std::uint8_t type, const made& send_cq, const made& receive_cq, const made* srq = nullptr,
                 std::uint32_t dc_flags = 0); // MLX5_QP_FLAG_TYPE_DC*: queue pairs without receives of their own
    made make_dm(std::uint64_t length);
    made try_dm(std::uint64_t length, std::uint32_t log_alignment);
    made make_dm_mr(const made& dm, std::uint64_t offset, std::uint64_t length);

    int destroy(std::uint16_t object, std::uint32_t handle); // for objects that need only a handle to be destroyed
    int destroy_cq(const made& cq, ib_uverbs_destroy_cq_resp& told);
    int destroy_qp(const made& qp, ib_uverbs_destroy_qp_resp& told);
    int destroy_srq(const made& srq);
    int modify_qp(const ib_uverbs_modify_qp& request);
    ib_uverbs_query_qp_resp query_qp(const made& qp);

    kernel_program& program;
    int fd;
    std::uint32_t pd;
    std::uint32_t uar = 0; // number
    std::uint32_t uar_handle;
    int async_fd;
};

} // namespace ucxl::softhca::test
