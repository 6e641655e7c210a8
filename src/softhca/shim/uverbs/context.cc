// The context of an open device file: what a library needs to use the device without the kernel.
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "prm/mkey.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint8_t completion_entry_version = 1; // with the user index in CQEs

// The page that converts timestamps of CQEs to time of day exists. The page to read the clock from does not: nothing
// would change its bytes.
constexpr std::uint8_t clock_pages = 1U << MLX5_IB_CLOCK_INFO_V1;

int check_request(const mlx5_ib_alloc_ucontext_req_v2& request)
{
    if ((request.flags & ~std::uint32_t{MLX5_IB_ALLOC_UCTX_DEVX}) != 0) {
        return EINVAL;
    }
    if (request.comp_mask != 0 || request.reserved0 != 0 || request.reserved1 != 0 || request.reserved2 != 0) {
        return EOPNOTSUPP;
    }
    if (request.total_num_bfregs == 0 || request.num_low_latency_bfregs > request.total_num_bfregs - 1) {
        return EINVAL;
    }
    // Doorbell pages are allocated one by one when needed, and have 4 KB.
    const std::uint64_t needed = MLX5_LIB_CAP_DYN_UAR | MLX5_LIB_CAP_4K_UAR;
    return (request.lib_caps & needed) == needed ? 0 : EOPNOTSUPP;
}

int read_key_without_memory(device_file& file, std::uint32_t& key)
{
    mailbox<prm::any_input> input(prm::command::query_special_contexts);
    prm::storage<prm::query_special_contexts_out> output;
    const int error = file.run_as_kernel(input, output);
    key             = (*output).get(prm::query_special_contexts_out::dump_fill_mkey);
    return error;
}

int fill_context(device_file& file, mlx5_ib_alloc_ucontext_resp& response)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const auto general   = caps.general();
    response.qp_tab_size = 1U << general.get(prm::hca_cap::log_max_qp);
    response.bf_reg_size = general.get(prm::hca_cap::bf) != 0 ? 1U << general.get(prm::hca_cap::log_bf_reg_size) : 0;
    response.cache_line_size     = 64;
    response.max_sq_desc_sz      = general.get(prm::hca_cap::max_wqe_sz_sq);
    response.max_rq_desc_sz      = general.get(prm::hca_cap::max_wqe_sz_rq);
    response.max_send_wqebb      = 1U << general.get(prm::hca_cap::log_max_qp_sz);
    response.max_recv_wr         = 1U << general.get(prm::hca_cap::log_max_qp_sz);
    response.max_srq_recv_wr     = 1U << general.get(prm::hca_cap::log_max_srq_sz);
    response.num_ports           = 1;
    response.response_length     = sizeof(response);
    response.cqe_version         = completion_entry_version;
    response.cmds_supp_uhw       = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
    response.eth_min_inline      = MLX5_USER_INLINE_MODE_NONE;
    response.clock_info_versions = clock_pages;
    response.log_uar_size        = 12;
    response.num_uars_per_page   = 1;
    response.comp_mask           = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG;
    if (general.get(prm::hca_cap::drain_sigerr) != 0) {
        response.comp_mask |= MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS;
    }
    if (general.get(prm::hca_cap::ece) != 0) {
        response.comp_mask |= MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE;
    }
    if (general.get(prm::hca_cap::dump_fill_mkey) != 0) {
        response.comp_mask |= MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY;
        return read_key_without_memory(file, response.dump_fill_mkey);
    }
    return 0;
}

int get_context(uverbs_call& call)
{
    device_file& file = call.file;
    if (file.has_context) {
        return EINVAL;
    }
    if (file.device.function(file.function).condition != device_condition::working) {
        return EAGAIN; // as mlx5_ib_alloc_ucontext()
    }
    mlx5_ib_alloc_ucontext_req_v2 request{};
    const std::size_t given = call.length(UVERBS_ATTR_UHW_IN);
    if (given != sizeof(mlx5_ib_alloc_ucontext_req) &&
        given < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version)) {
        return EINVAL;
    }
    if (const int error = call.read(UVERBS_ATTR_UHW_IN, request); error != 0) {
        return error;
    }
    if (const int error = check_request(request); error != 0) {
        return error;
    }
    mlx5_ib_alloc_ucontext_resp response{};
    if (const int error = fill_context(file, response); error != 0) {
        return error;
    }
    response.cqe_version     = std::min(response.cqe_version, request.max_cqe_version);
    response.response_length = static_cast<std::uint32_t>(std::min(call.length(UVERBS_ATTR_UHW_OUT), sizeof(response)));

    const std::uint64_t core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
    if (const int error = call.write(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, completion_vectors); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, core_support); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_UHW_OUT, response); error != 0) {
        return error;
    }
    file.has_context = true;
    file.may_devx    = (request.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
    return 0;
}

int query_context(uverbs_call& call)
{
    mlx5_ib_alloc_ucontext_resp response{};
    if (const int error = fill_context(call.file, response); error != 0) {
        return error;
    }
    const std::uint64_t core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
    if (const int error = call.write(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, completion_vectors); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, core_support); error != 0) {
        return error;
    }
    return call.write(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, response);
}

constexpr std::array get_context_attributes{
    output<std::uint32_t>(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, presence::optional),
    output<std::uint64_t>(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array query_context_attributes{
    output<std::uint32_t>(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, presence::optional),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, presence::optional),
    output_from(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 0, presence::mandatory),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, get_context_attributes, get_context},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context_attributes, query_context},
};

} // namespace

std::span<const method_spec> context_methods()
{
    return methods;
}

} // namespace ucxl::softhca
