// QUERY_QP, and multicast groups.
#include <infiniband/verbs.h>

#include <utility>

#include "call.h"
#include "prm/qp.h"
#include "softhca/shim/objects/qp_object.h"
#include "softhca/shim/objects/qp_path.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t access_read   = IB_UVERBS_ACCESS_REMOTE_READ;
constexpr std::uint32_t access_write  = IB_UVERBS_ACCESS_REMOTE_WRITE;
constexpr std::uint32_t access_atomic = IB_UVERBS_ACCESS_REMOTE_ATOMIC;

std::uint32_t verbs_state(prm::qp_state state)
{
    switch (state) {
    case prm::qp_state::reset:
        return IBV_QPS_RESET;
    case prm::qp_state::init:
        return IBV_QPS_INIT;
    case prm::qp_state::rtr:
        return IBV_QPS_RTR;
    case prm::qp_state::rts:
        return IBV_QPS_RTS;
    case prm::qp_state::send_error:
        return IBV_QPS_SQE;
    case prm::qp_state::send_drain:
    case prm::qp_state::send_draining:
    case prm::qp_state::suspended:
        return IBV_QPS_SQD;
    case prm::qp_state::error:
        break;
    }
    return IBV_QPS_ERR;
}

std::uint8_t verbs_migration(prm::path_migration state)
{
    switch (state) {
    case prm::path_migration::armed:
        return IBV_MIG_ARMED;
    case prm::path_migration::rearm:
        return IBV_MIG_REARM;
    case prm::path_migration::migrated:
    case prm::path_migration::reserved:
        break;
    }
    return IBV_MIG_MIGRATED;
}

void fill_connection(prm::const_view<prm::qpc> from, ib_uverbs_query_qp_resp& to)
{
    const auto path       = from.at(prm::qpc::primary_address_path);
    to.qkey               = from.get(prm::qpc::q_key);
    to.rq_psn             = from.get(prm::qpc::next_rcv_psn);
    to.sq_psn             = from.get(prm::qpc::next_send_psn);
    to.dest_qp_num        = from.get(prm::qpc::remote_qpn);
    to.pkey_index         = path.get(prm::ads::pkey_index);
    to.port_num           = path.get(prm::ads::vhca_port_num);
    to.timeout            = path.get(prm::ads::ack_timeout);
    to.path_mtu           = std::to_underlying(from.get(prm::qpc::mtu));
    to.path_mig_state     = verbs_migration(from.get(prm::qpc::pm_state));
    to.max_rd_atomic      = static_cast<std::uint8_t>(1U << from.get(prm::qpc::log_sra_max));
    to.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << from.get(prm::qpc::log_rra_max));
    to.min_rnr_timer      = from.get(prm::qpc::min_rnr_nak);
    to.retry_cnt          = from.get(prm::qpc::retry_count);
    to.rnr_retry          = from.get(prm::qpc::rnr_retry);
    to.qp_access_flags    = (from.get(prm::qpc::rre) ? access_read : 0) | (from.get(prm::qpc::rwe) ? access_write : 0) |
                         (from.get(prm::qpc::rae) ? access_atomic : 0);
}

} // namespace

int write_query_qp(uverbs_call& call)
{
    ib_uverbs_query_qp request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    qp_object* queue_pair = nullptr;
    if (const int error = call.find_object(request.qp_handle, queue_pair); error != 0) {
        return error;
    }
    mailbox<prm::query_qp_in> in(prm::command::query_qp);
    in.set(prm::query_qp_in::qpn, queue_pair->qpn);
    prm::storage<prm::query_qp_out> out;
    if (const int error = call.file.run(in, out); error != 0) {
        return error;
    }
    const prm::const_view<prm::qpc> context = (*out).at(prm::query_qp_out::qpc);
    ib_uverbs_query_qp_resp response{};
    fill_connection(context, response);
    if (queue_pair->service != prm::qp_service::ud) {
        get_path(context.at(prm::qpc::primary_address_path), response.dest);
    }
    queue_pair->state        = verbs_state(context.get(prm::qpc::state));
    response.qp_state        = static_cast<std::uint8_t>(queue_pair->state);
    response.cur_qp_state    = response.qp_state;
    response.sq_draining     = context.get(prm::qpc::state) == prm::qp_state::send_draining ? 1 : 0;
    response.max_send_wr     = queue_pair->limits.max_send_wr;
    response.max_recv_wr     = queue_pair->limits.max_recv_wr;
    response.max_send_sge    = queue_pair->limits.max_send_sge;
    response.max_recv_sge    = queue_pair->limits.max_recv_sge;
    response.max_inline_data = queue_pair->limits.max_inline_data;
    response.sq_sig_all      = queue_pair->signal_all ? 1 : 0;
    return call.respond(response);
}

// The device has no multicast groups.
int write_attach_mcast(uverbs_call& call)
{
    ib_uverbs_attach_mcast request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    qp_object* queue_pair = nullptr;
    const int error       = call.find_object(request.qp_handle, queue_pair);
    return error != 0 ? error : EOPNOTSUPP;
}

int write_detach_mcast(uverbs_call& call)
{
    return write_attach_mcast(call);
}

} // namespace ucxl::softhca
