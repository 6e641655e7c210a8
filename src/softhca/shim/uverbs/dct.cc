#include "dct.h"

#include <infiniband/verbs.h>

#include <cstddef>
#include <utility>

#include "port_attributes.h"
#include "softhca/shim/sysfs/files.h"

namespace ucxl::softhca
{

namespace
{

using prm::dctc;

constexpr std::uint32_t to_init = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr std::uint32_t to_rtr  = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU;

constexpr std::uint32_t known = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
                                IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX;

constexpr std::uint32_t flow_label_mask = 0xfffff;

int prepare(qp_object& target, const ib_uverbs_modify_qp& request)
{
    if (request.port_num != only_port) {
        return EINVAL;
    }
    auto& input        = target.target->command;
    const auto context = input.at(prm::create_dct_in::dct_context);
    input.set(context, dctc::rre, (request.qp_access_flags & IB_UVERBS_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
    input.set(context, dctc::rwe, (request.qp_access_flags & IB_UVERBS_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
    if ((request.qp_access_flags & IB_UVERBS_ACCESS_REMOTE_ATOMIC) != 0) {
        input.set(context, dctc::rae, 1);
        input.set(context, dctc::atomic_mode, prm::atomic_mode::up_to_8b);
    }
    input.set(context, dctc::pkey_index, request.pkey_index);
    input.set(context, dctc::port, request.port_num);
    return 0;
}

int make(qp_object& target, const ib_uverbs_modify_qp& request)
{
    auto& input        = target.target->command;
    const auto context = input.at(prm::create_dct_in::dct_context);
    input.set(context, dctc::min_rnr_nak, request.min_rnr_timer);
    input.set(context, dctc::tclass, request.dest.traffic_class);
    input.set(context, dctc::flow_label, request.dest.flow_label & flow_label_mask);
    input.set(context, dctc::mtu, request.path_mtu);
    input.set(context, dctc::my_addr_index, request.dest.sgid_index);
    input.set(context, dctc::hop_limit, request.dest.hop_limit);
    prm::storage<prm::create_dct_out> output;
    if (const int error = target.file.run(input, output); error != 0) {
        return error;
    }
    target.qpn = (*output).get(prm::create_dct_out::dctn);
    return 0;
}

} // namespace

int modify_target(uverbs_call& call, qp_object& target, const ib_uverbs_modify_qp& request,
                  mlx5_ib_modify_qp_resp& answer)
{
    int error = EINVAL;
    if (target.state == IBV_QPS_RESET && request.qp_state == IBV_QPS_INIT && request.attr_mask == to_init) {
        error = prepare(target, request);
    } else if (target.state == IBV_QPS_INIT && request.qp_state == IBV_QPS_RTR && request.attr_mask == to_rtr &&
               call.length(UVERBS_ATTR_UHW_OUT) >= offsetof(mlx5_ib_modify_qp_resp, ece_options)) {
        error       = make(target, request);
        answer.dctn = target.qpn;
    }
    if (error == 0) {
        target.state = request.qp_state;
    }
    return error;
}

int query_target(uverbs_call& call, const qp_object& target, const ib_uverbs_query_qp& request)
{
    if ((request.attr_mask & ~known) != 0 || target.state != IBV_QPS_RTR) {
        return EINVAL;
    }
    mailbox<prm::plain_dct_in> input(prm::command::query_dct);
    input.set(prm::plain_dct_in::dctn, target.qpn);
    prm::storage<prm::query_dct_out> output;
    if (const int error = call.file.run(input, output); error != 0) {
        return error;
    }
    const auto context = (*output).at(prm::query_dct_out::dct_context);
    ib_uverbs_query_qp_resp response{};
    response.qp_state     = IBV_QPS_RTR;
    response.cur_qp_state = IBV_QPS_RTR;
    response.qp_access_flags =
        (context.get(dctc::rre) ? static_cast<std::uint32_t>(IB_UVERBS_ACCESS_REMOTE_READ) : 0) |
        (context.get(dctc::rwe) ? static_cast<std::uint32_t>(IB_UVERBS_ACCESS_REMOTE_WRITE) : 0) |
        (context.get(dctc::rae) ? static_cast<std::uint32_t>(IB_UVERBS_ACCESS_REMOTE_ATOMIC) : 0);
    response.port_num           = context.get(dctc::port);
    response.min_rnr_timer      = context.get(dctc::min_rnr_nak);
    response.path_mtu           = std::to_underlying(context.get(dctc::mtu));
    response.pkey_index         = context.get(dctc::pkey_index);
    response.dest.traffic_class = context.get(dctc::tclass);
    response.dest.flow_label    = context.get(dctc::flow_label);
    response.dest.sgid_index    = context.get(dctc::my_addr_index);
    response.dest.hop_limit     = context.get(dctc::hop_limit);
    return call.respond(response);
}

} // namespace ucxl::softhca
