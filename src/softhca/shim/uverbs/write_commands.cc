#include "write_commands.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "call.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t max_commands          = IB_USER_VERBS_CMD_OPEN_QP + 1;
constexpr std::uint32_t max_extended_commands = IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1;

template <typename Request, typename Response>
constexpr write_command command(std::uint32_t number, int (*run)(uverbs_call&))
{
    return {.command = number, .request_bytes = sizeof(Request), .response_bytes = sizeof(Response), .run = run};
}

template <typename Request>
constexpr write_command command(std::uint32_t number, int (*run)(uverbs_call&))
{
    return {.command = number, .request_bytes = sizeof(Request), .response_bytes = 0, .run = run};
}

constexpr write_command extended(std::uint32_t number, std::size_t request_bytes, std::size_t response_bytes,
                                 int (*run)(uverbs_call&))
{
    return {.command        = number,
            .extended       = true,
            .request_bytes  = request_bytes,
            .response_bytes = response_bytes,
            .run            = run};
}

// The lengths of the first versions of structures that grew.
constexpr std::size_t query_device_ex_response_bytes =
    offsetof(ib_uverbs_ex_query_device_resp, response_length) + sizeof(std::uint32_t);

constexpr std::array commands{
    command<ib_uverbs_query_device, ib_uverbs_query_device_resp>(IB_USER_VERBS_CMD_QUERY_DEVICE, write_query_device),
    command<ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp>(IB_USER_VERBS_CMD_ALLOC_PD, write_alloc_pd),
    command<ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp>(IB_USER_VERBS_CMD_REG_MR, write_reg_mr),
    command<ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp>(IB_USER_VERBS_CMD_REREG_MR, write_rereg_mr),
    command<ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp>(IB_USER_VERBS_CMD_ALLOC_MW, write_alloc_mw),
    command<ib_uverbs_create_comp_channel, ib_uverbs_create_comp_channel_resp>(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
                                                                               write_create_comp_channel),
    command<ib_uverbs_resize_cq, ib_uverbs_resize_cq_resp>(IB_USER_VERBS_CMD_RESIZE_CQ, write_resize_cq),
    command<ib_uverbs_modify_qp>(IB_USER_VERBS_CMD_MODIFY_QP, write_modify_qp),
    command<ib_uverbs_query_qp, ib_uverbs_query_qp_resp>(IB_USER_VERBS_CMD_QUERY_QP, write_query_qp),
    command<ib_uverbs_attach_mcast>(IB_USER_VERBS_CMD_ATTACH_MCAST, write_attach_mcast),
    command<ib_uverbs_detach_mcast>(IB_USER_VERBS_CMD_DETACH_MCAST, write_detach_mcast),
    command<ib_uverbs_modify_srq>(IB_USER_VERBS_CMD_MODIFY_SRQ, write_modify_srq),
    command<ib_uverbs_query_srq, ib_uverbs_query_srq_resp>(IB_USER_VERBS_CMD_QUERY_SRQ, write_query_srq),
    extended(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, sizeof(ib_uverbs_ex_query_device), query_device_ex_response_bytes,
             write_query_device_ex),
    extended(IB_USER_VERBS_EX_CMD_MODIFY_QP, sizeof(ib_uverbs_modify_qp), 0, write_modify_qp_ex),
    extended(IB_USER_VERBS_EX_CMD_MODIFY_CQ, sizeof(ib_uverbs_ex_modify_cq), 0, write_modify_cq),
};

} // namespace

int find_write_command(std::uint32_t number, const write_command*& found)
{
    if ((number & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK)) != 0) {
        return EINVAL;
    }
    const bool is_extended    = (number & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0;
    const std::uint32_t index = number & IB_USER_VERBS_CMD_COMMAND_MASK;
    if (is_extended ? index >= max_extended_commands : index >= max_commands) {
        return is_extended ? EOPNOTSUPP : EINVAL;
    }
    const auto* const known = std::ranges::find_if(commands, [=](const write_command& candidate) {
        return candidate.command == index && candidate.extended == is_extended;
    });
    if (known == commands.end()) {
        return EOPNOTSUPP;
    }
    found = known;
    return 0;
}

int run_write_command(uverbs_call& call, const write_command& command)
{
    return call.file.has_context ? command.run(call) : EINVAL;
}

} // namespace ucxl::softhca
