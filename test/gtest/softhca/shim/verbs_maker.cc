#include "verbs_maker.h"

#include <gtest/gtest.h>

namespace ucxl::softhca::test
{

namespace
{

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value)
{
    return std::as_bytes(std::span(&value, 1));
}

} // namespace

verbs_maker::verbs_maker(kernel_program& its_program, unsigned number)
    : program(its_program), fd(its_program.open_context(number)), pd(its_program.alloc_pd(fd)),
      uar_handle(its_program.alloc_uar(fd, &uar)), async_fd(its_program.async_channel(fd))
{
}

verbs_maker::made verbs_maker::try_mr(std::uint64_t address, std::uint64_t length, std::uint64_t iova,
                                      std::uint32_t access, std::uint32_t in_pd)
{
    ib_uverbs_reg_mr request{};
    request.start        = address;
    request.length       = length;
    request.hca_va       = iova;
    request.pd_handle    = in_pd;
    request.access_flags = access;
    ib_uverbs_reg_mr_resp response{};
    const int error = write_command(program, fd, IB_USER_VERBS_CMD_REG_MR, request, response);
    return {.handle = response.mr_handle, .number = response.lkey, .error = error};
}

verbs_maker::made verbs_maker::make_mr(std::span<std::byte> memory, std::uint32_t access)
{
    const std::uint64_t address = address_of(memory.data());
    const made mr               = try_mr(address, memory.size(), address, access, pd);
    EXPECT_EQ(mr.error, 0);
    return mr;
}

verbs_maker::made verbs_maker::try_mw(std::uint8_t type)
{
    ib_uverbs_alloc_mw request{};
    request.pd_handle = pd;
    request.mw_type   = type;
    ib_uverbs_alloc_mw_resp response{};
    const int error = write_command(program, fd, IB_USER_VERBS_CMD_ALLOC_MW, request, response);
    return {.handle = response.mw_handle, .number = response.rkey, .error = error};
}

verbs_maker::made verbs_maker::make_cq(std::uint32_t entries, int channel, std::uint64_t user_handle)
{
    mlx5_ib_create_cq driver{};
    driver.buf_addr       = address_of(program.room(std::bit_ceil(entries + 1) * std::size_t{64}).data());
    driver.db_addr        = address_of(program.room(8).data());
    driver.cqe_size       = 64;
    driver.flags          = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    driver.uar_page_index = static_cast<std::uint16_t>(uar);
    uverbs_request call(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    call.object(UVERBS_ATTR_CREATE_CQ_HANDLE, 0)
        .in(UVERBS_ATTR_CREATE_CQ_CQE, entries)
        .in(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, user_handle)
        .in(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, std::uint32_t{0})
        .out<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE)
        .object(UVERBS_ATTR_CREATE_CQ_EVENT_FD, static_cast<std::uint64_t>(async_fd))
        .in(UVERBS_ATTR_UHW_IN, driver)
        .out<mlx5_ib_create_cq_resp>(UVERBS_ATTR_UHW_OUT);
    if (channel >= 0) {
        call.object(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, static_cast<std::uint64_t>(channel));
    }
    const int error = call.run(fd);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(call.answer<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE), std::bit_ceil(entries + 1) - 1);
    return {.handle = static_cast<std::uint32_t>(call.handle(UVERBS_ATTR_CREATE_CQ_HANDLE)),
            .number = call.answer<std::uint32_t>(UVERBS_ATTR_UHW_OUT),
            .error  = error};
}

verbs_maker::made verbs_maker::make_srq(std::uint32_t max_wr)
{
    mlx5_ib_create_srq driver{};
    driver.buf_addr = address_of(program.room(std::bit_ceil(max_wr + 1) * std::size_t{32}).data());
    driver.db_addr  = address_of(program.room(8).data());
    uverbs_request call(program, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
    call.object(UVERBS_ATTR_CREATE_SRQ_HANDLE, 0)
        .object(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd)
        .constant(UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC)
        .in(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, std::uint64_t{3})
        .in(UVERBS_ATTR_CREATE_SRQ_MAX_WR, max_wr)
        .in(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, std::uint32_t{1})
        .in(UVERBS_ATTR_CREATE_SRQ_LIMIT, std::uint32_t{0})
        .object(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, static_cast<std::uint64_t>(async_fd))
        .out<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR)
        .out<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE)
        .in(UVERBS_ATTR_UHW_IN, driver)
        .out<mlx5_ib_create_srq_resp>(UVERBS_ATTR_UHW_OUT);
    const int error = call.run(fd);
    EXPECT_EQ(error, 0);
    return {.handle = static_cast<std::uint32_t>(call.handle(UVERBS_ATTR_CREATE_SRQ_HANDLE)),
            .number = call.answer<std::uint32_t>(UVERBS_ATTR_UHW_OUT),
            .error  = error};
}

verbs_maker::made verbs_maker::make_qp(std::uint8_t type, const made& send_cq, const made& receive_cq, const made* srq,
                                       std::uint32_t dc_flags)
{
    constexpr std::uint32_t blocks = 16;
    const std::uint32_t receives   = dc_flags == 0 ? 8 : 0;
    mlx5_ib_create_qp driver{};
    driver.buf_addr     = address_of(program.room(blocks * 64 + receives * 16).data());
    driver.db_addr      = address_of(program.room(8).data());
    driver.sq_wqe_count = blocks;
    driver.rq_wqe_count = srq == nullptr ? receives : 0;
    driver.rq_wqe_shift = srq == nullptr ? 4 : 0;
    driver.flags        = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_SCATTER_CQE | dc_flags;
    driver.access_key   = dc_flags == 0 ? 0 : 0x1122334455667788;
    driver.bfreg_index  = uar;
    ib_uverbs_qp_cap limits{.max_send_wr     = 4,
                            .max_recv_wr     = receives,
                            .max_send_sge    = 1,
                            .max_recv_sge    = receives == 0 ? 0U : 1U,
                            .max_inline_data = 0};
    uverbs_request call(program, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    call.object(UVERBS_ATTR_CREATE_QP_HANDLE, 0)
        .object(UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd)
        .object(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, send_cq.handle)
        .object(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, receive_cq.handle)
        .in(UVERBS_ATTR_CREATE_QP_USER_HANDLE, std::uint64_t{2})
        .in(UVERBS_ATTR_CREATE_QP_CAP, limits)
        .constant(UVERBS_ATTR_CREATE_QP_TYPE, type)
        .object(UVERBS_ATTR_CREATE_QP_EVENT_FD, static_cast<std::uint64_t>(async_fd))
        .out<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_RESP_CAP)
        .out<std::uint32_t>(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM)
        .in(UVERBS_ATTR_UHW_IN, driver)
        .out<mlx5_ib_create_qp_resp>(UVERBS_ATTR_UHW_OUT);
    if (srq != nullptr) {
        call.object(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, srq->handle);
    }
    const int error = call.run(fd);
    return {.handle = static_cast<std::uint32_t>(call.handle(UVERBS_ATTR_CREATE_QP_HANDLE)),
            .number = call.answer<std::uint32_t>(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM),
            .error  = error};
}

verbs_maker::made verbs_maker::try_dm(std::uint64_t length, std::uint32_t log_alignment)
{
    uverbs_request call(program, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
    call.object(UVERBS_ATTR_ALLOC_DM_HANDLE, 0)
        .in(UVERBS_ATTR_ALLOC_DM_LENGTH, length)
        .in(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, log_alignment)
        .out<std::uint64_t>(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET)
        .out<std::uint16_t>(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX);
    const int error = call.run(fd);
    return {
        .handle = static_cast<std::uint32_t>(call.handle(UVERBS_ATTR_ALLOC_DM_HANDLE)), .number = 0, .error = error};
}

verbs_maker::made verbs_maker::make_dm(std::uint64_t length)
{
    const made dm = try_dm(length, 0);
    EXPECT_EQ(dm.error, 0);
    return dm;
}

verbs_maker::made verbs_maker::make_dm_mr(const made& dm, std::uint64_t offset, std::uint64_t length)
{
    uverbs_request call(program, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
    call.object(UVERBS_ATTR_REG_DM_MR_HANDLE, 0)
        .object(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd)
        .object(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm.handle)
        .in(UVERBS_ATTR_REG_DM_MR_OFFSET, offset)
        .in(UVERBS_ATTR_REG_DM_MR_LENGTH, length)
        .in(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS,
            std::uint32_t{IB_UVERBS_ACCESS_ZERO_BASED | IB_UVERBS_ACCESS_LOCAL_WRITE})
        .out<std::uint32_t>(UVERBS_ATTR_REG_DM_MR_RESP_LKEY)
        .out<std::uint32_t>(UVERBS_ATTR_REG_DM_MR_RESP_RKEY);
    const int error = call.run(fd);
    return {.handle = static_cast<std::uint32_t>(call.handle(UVERBS_ATTR_REG_DM_MR_HANDLE)),
            .number = call.answer<std::uint32_t>(UVERBS_ATTR_REG_DM_MR_RESP_LKEY),
            .error  = error};
}

int verbs_maker::destroy(std::uint16_t object, std::uint32_t handle)
{
    std::uint16_t method    = UVERBS_METHOD_PD_DESTROY;
    std::uint16_t attribute = UVERBS_ATTR_DESTROY_PD_HANDLE;
    if (object == UVERBS_OBJECT_MR) {
        method = UVERBS_METHOD_MR_DESTROY;
    } else if (object == UVERBS_OBJECT_DM) {
        method = UVERBS_METHOD_DM_FREE;
    } else if (object == MLX5_IB_OBJECT_UAR) {
        method    = MLX5_IB_METHOD_UAR_OBJ_DESTROY;
        attribute = MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE;
    }
    uverbs_request call(program, object, method);
    call.object(attribute, handle);
    return call.run(fd);
}

int verbs_maker::destroy_cq(const made& cq, ib_uverbs_destroy_cq_resp& told)
{
    uverbs_request call(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
    call.object(UVERBS_ATTR_DESTROY_CQ_HANDLE, cq.handle).out<ib_uverbs_destroy_cq_resp>(UVERBS_ATTR_DESTROY_CQ_RESP);
    const int error = call.run(fd);
    told            = call.answer<ib_uverbs_destroy_cq_resp>(UVERBS_ATTR_DESTROY_CQ_RESP);
    return error;
}

int verbs_maker::destroy_qp(const made& qp, ib_uverbs_destroy_qp_resp& told)
{
    uverbs_request call(program, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
    call.object(UVERBS_ATTR_DESTROY_QP_HANDLE, qp.handle).out<ib_uverbs_destroy_qp_resp>(UVERBS_ATTR_DESTROY_QP_RESP);
    const int error = call.run(fd);
    told            = call.answer<ib_uverbs_destroy_qp_resp>(UVERBS_ATTR_DESTROY_QP_RESP);
    return error;
}

int verbs_maker::destroy_srq(const made& srq)
{
    uverbs_request call(program, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
    call.object(UVERBS_ATTR_DESTROY_SRQ_HANDLE, srq.handle)
        .out<ib_uverbs_destroy_srq_resp>(UVERBS_ATTR_DESTROY_SRQ_RESP);
    return call.run(fd);
}

int verbs_maker::modify_qp(const ib_uverbs_modify_qp& request)
{
    uverbs_request call(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    call.constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_MODIFY_QP);
    call.in_bytes(UVERBS_ATTR_CORE_IN, bytes_of(request).data(), sizeof(request));
    return call.run(fd);
}

ib_uverbs_query_qp_resp verbs_maker::query_qp(const made& qp)
{
    ib_uverbs_query_qp request{};
    request.qp_handle = qp.handle;
    ib_uverbs_query_qp_resp response{};
    EXPECT_EQ(write_command(program, fd, IB_USER_VERBS_CMD_QUERY_QP, request, response), 0);
    return response;
}

} // namespace ucxl::softhca::test
