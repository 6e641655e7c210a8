// Queue pairs: create, query, destroy. The state transitions are in qp_transition.cc.
#include "prm/qp.h"

#include "call.h"
#include "prm/doorbell.h"
#include "qp_context.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/queues/completion.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using context_view = prm::const_view<prm::qpc>;

constexpr std::uint64_t send_block_bytes = 64;

// A DCI sends only: it may name a shared receive queue, as UCX does, and does not use it.
command_status check_initiator(command_call& call, context_view context)
{
    if (context.get(prm::qpc::rq_type) == prm::receive_queue_type::regular) {
        return call.refuse(command_status::bad_parameter, "a DCI has no receive queue");
    }
    if (context.get(prm::qpc::log_num_dci_stream_channels) > log_max_dci_streams ||
        context.get(prm::qpc::log_num_dci_errored_streams) > log_max_dci_streams) {
        return call.refuse(command_status::bad_parameter, "the number of stream channels");
    }
    return command_status::ok;
}

command_status check_kind(command_call& call, prm::const_view<prm::create_qp_in> input)
{
    const context_view context       = input.at(prm::create_qp_in::qpc);
    const prm::qp_service service    = context.get(prm::qpc::st);
    const prm::receive_queue_type rq = context.get(prm::qpc::rq_type);
    if (service != prm::qp_service::rc && service != prm::qp_service::uc && service != prm::qp_service::ud &&
        service != prm::qp_service::dci) {
        return call.refuse(command_status::bad_parameter, "only RC, UC, UD and DC are modelled");
    }
    if (service == prm::qp_service::dci) {
        if (const auto status = check_initiator(call, context); status != command_status::ok) {
            return status;
        }
    }
    if (input.get(prm::create_qp_in::input_qpn) != 0 || input.get(prm::create_qp_in::cmd_on_behalf)) {
        return call.refuse(command_status::bad_parameter, "queue pairs by name or for others are not modelled");
    }
    if (rq != prm::receive_queue_type::regular && rq != prm::receive_queue_type::shared_rmp_xrq &&
        rq != prm::receive_queue_type::zero_size) {
        return call.refuse(command_status::bad_parameter, "rq_type");
    }
    if (context.get(prm::qpc::wq_signature) || context.get(prm::qpc::send_dbr_mode) != 0) {
        return call.refuse(command_status::bad_parameter, "signatures and queues without doorbell record");
    }
    if (context.get(prm::qpc::rlkey) && call.uid != 0) {
        return call.refuse(command_status::bad_parameter, "the reserved lkey is the kernel's");
    }
    if (context.get(prm::qpc::pm_state) == prm::path_migration::reserved) {
        return call.refuse(command_status::bad_parameter, "pm_state");
    }
    return command_status::ok;
}

command_status check_sizes(command_call& call, context_view context)
{
    if (!context.get(prm::qpc::no_sq) && context.get(prm::qpc::log_sq_size) > log_max_qp_size) {
        return call.refuse(command_status::limit_exceeded, "log_sq_size");
    }
    if (context.get(prm::qpc::rq_type) != prm::receive_queue_type::regular) {
        return command_status::ok;
    }
    if (context.get(prm::qpc::log_rq_size) > log_max_qp_size) {
        return call.refuse(command_status::limit_exceeded, "log_rq_size");
    }
    if (16U << context.get(prm::qpc::log_rq_stride) > max_receive_wqe_bytes) {
        return call.refuse(command_status::bad_parameter, "log_rq_stride");
    }
    return command_status::ok;
}

// The objects that the queue pair refers to.
command_status check_references(command_call& call, const qp_record& qp)
{
    arena& memory = call.memory();
    if (own(call, memory.pds, qp.pd) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such protection domain");
    }
    if (qp.send.present && own(call, memory.cqs, qp.send_cq) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue for sends");
    }
    if ((qp.receive.present || qp.srq != 0) && own(call, memory.cqs, qp.receive_cq) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue for receives");
    }
    if (qp.send.present && !owns_uar(call, qp.uar)) {
        return call.refuse(command_status::bad_resource, "no such doorbell page");
    }
    return command_status::ok;
}

// The receive queue is at the beginning of the buffer, the send queue follows.
command_status take_memory(command_call& call, prm::const_view<prm::create_qp_in> input, qp_record& qp)
{
    const context_view context = input.at(prm::create_qp_in::qpc);
    const std::uint64_t receive_size =
        qp.receive.present ? std::uint64_t{1} << (qp.receive.log_size + qp.receive.log_stride) : 0;
    const std::uint64_t send_size = qp.send.present ? send_block_bytes << qp.send.log_size : 0;
    qp.receive.offset             = 0;
    qp.send.offset                = (receive_size + send_block_bytes - 1) / send_block_bytes * send_block_bytes;
    if (!qp.receive.present && !qp.send.present) {
        return command_status::ok;
    }
    if (!input.get(prm::create_qp_in::wq_umem_valid) || !context.get(prm::qpc::dbr_umem_valid)) {
        return call.refuse(command_status::bad_parameter, "page lists are not modelled: use umems");
    }
    qp.umem           = input.get(prm::create_qp_in::wq_umem_id);
    qp.doorbell_umem  = context.get(prm::qpc::dbr_umem_id);
    const auto length = qp.send.present ? qp.send.offset + send_size : receive_size;
    const auto buffer = umem_range(call, qp.umem, input.get(prm::create_qp_in::wq_umem_offset), length);
    const auto doorbell =
        umem_range(call, qp.doorbell_umem, context.get(prm::qpc::dbr_addr), prm::qp_doorbell_record::size_bytes);
    if (!buffer || !doorbell) {
        return call.refuse(command_status::bad_resource, "no such umem, or it is too short");
    }
    if (doorbell->address % prm::qp_doorbell_record::size_bytes != 0) {
        return call.refuse(command_status::bad_parameter, "the doorbell record is not aligned");
    }
    qp.buffer   = *buffer;
    qp.doorbell = *doorbell;
    return command_status::ok;
}

// The fields of the context that never change.
qp_record fixed_fields(context_view context)
{
    qp_record qp;
    qp.service         = context.get(prm::qpc::st);
    qp.pd              = context.get(prm::qpc::pd);
    qp.uar             = context.get(prm::qpc::uar_page);
    qp.user_index      = context.get(prm::qpc::user_index);
    qp.privileged      = context.get(prm::qpc::rlkey);
    qp.send.present    = !context.get(prm::qpc::no_sq);
    qp.send.log_size   = context.get(prm::qpc::log_sq_size);
    qp.receive.present = context.get(prm::qpc::rq_type) == prm::receive_queue_type::regular;
    if (qp.receive.present) {
        qp.receive.log_size   = context.get(prm::qpc::log_rq_size);
        qp.receive.log_stride = static_cast<std::uint8_t>(4 + context.get(prm::qpc::log_rq_stride));
    }
    qp.send_cq    = context.get(prm::qpc::cqn_snd);
    qp.receive_cq = context.get(prm::qpc::cqn_rcv);
    if (qp.service == prm::qp_service::dci) {
        qp.dc.log_streams = context.get(prm::qpc::log_num_dci_stream_channels);
        qp.dc.log_errored = context.get(prm::qpc::log_num_dci_errored_streams);
    }
    return qp;
}

command_status take_shared_queue(command_call& call, context_view context, qp_record& qp)
{
    if (context.get(prm::qpc::rq_type) != prm::receive_queue_type::shared_rmp_xrq) {
        return command_status::ok;
    }
    qp.srq                      = context.get(prm::qpc::srqn_rmpn_xrqn);
    const srq_record* const srq = own(call, call.memory().srqs, qp.srq);
    if (srq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such shared receive queue");
    }
    if (qp.service == prm::qp_service::uc) {
        return call.refuse(command_status::bad_parameter, "UC has no shared receive queues");
    }
    if (qp.service == prm::qp_service::dci) {
        qp.srq = 0;
    }
    return command_status::ok;
}

command_status publish_qp(command_call& call, qp_record& qp, prm::view<prm::create_qp_out> output)
{
    arena& memory          = call.memory();
    const std::uint32_t id = find_room(call, memory.qps);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all queue pairs are taken");
    }
    call.queue_pairs.push_back(id);
    fresh(memory.qps, id) = qp;
    hold(memory.pds, qp.pd);
    hold(memory.cqs, qp.send_cq);
    hold(memory.cqs, qp.receive_cq);
    hold(memory.srqs, qp.srq);
    hold(memory.umems, qp.umem);
    hold(memory.umems, qp.doorbell_umem);
    hold(memory.uars, qp.uar);
    publish(memory.qps, id, call.owner());
    (void)output.set(prm::create_qp_out::qpn, id);
    return command_status::ok;
}

command_status create_qp(command_call& call, prm::const_view<prm::create_qp_in> input,
                         prm::view<prm::create_qp_out> output)
{
    const context_view context = input.at(prm::create_qp_in::qpc);
    if (const auto status = check_kind(call, input); status != command_status::ok) {
        return status;
    }
    if (const auto status = check_sizes(call, context); status != command_status::ok) {
        return status;
    }
    qp_record qp = fixed_fields(context);
    if (const auto status = take_shared_queue(call, context, qp); status != command_status::ok) {
        return status;
    }
    if (const auto status = check_references(call, qp); status != command_status::ok) {
        return status;
    }
    if (const auto status = take_memory(call, input, qp); status != command_status::ok) {
        return status;
    }
    // A queue pair holds no reference to what it does not use.
    qp.send_cq    = qp.send.present ? qp.send_cq : 0;
    qp.receive_cq = qp.receive.present || qp.srq != 0 ? qp.receive_cq : 0;
    qp.uar        = qp.send.present ? qp.uar : 0;
    std::ranges::copy(context.span(), std::as_writable_bytes(std::span(qp.context)).begin());
    return publish_qp(call, qp, output);
}

command_status query_qp(command_call& call, prm::const_view<prm::query_qp_in> input,
                        prm::view<prm::query_qp_out> output)
{
    const qp_record* const qp = own_queue_pair(call, input.get(prm::query_qp_in::qpn));
    if (qp == nullptr) {
        return call.refuse(command_status::bad_resource, "no such queue pair");
    }
    store_context(*qp, output.at(prm::query_qp_out::qpc));
    return command_status::ok;
}

command_status destroy_qp(command_call& call, prm::const_view<prm::plain_qp_in> input, prm::view<prm::any_output>)
{
    arena& memory             = call.memory();
    const std::uint32_t id    = input.get(prm::plain_qp_in::qpn);
    const qp_record* const qp = own_queue_pair(call, id);
    if (qp == nullptr) {
        return call.refuse(command_status::bad_resource, "no such queue pair");
    }
    if (qp->multicast_users != 0) {
        return call.refuse(command_status::bad_resource_state, "attached to a multicast group");
    }
    release_completions(call.device, *qp);
    retire(memory.qps, id);
    let_go(memory.pds, qp->pd);
    let_go(memory.cqs, qp->send_cq);
    let_go(memory.cqs, qp->receive_cq);
    let_go(memory.srqs, qp->srq);
    let_go(memory.umems, qp->umem);
    let_go(memory.umems, qp->doorbell_umem);
    let_go(memory.uars, qp->uar);
    std::erase(call.queue_pairs, id);
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::create_qp_in, prm::create_qp_out, create_qp>(prm::command::create_qp),
    entry<prm::query_qp_in, prm::query_qp_out, query_qp>(prm::command::query_qp),
    entry<prm::plain_qp_in, prm::any_output, destroy_qp>(prm::command::destroy_qp),
};

} // namespace

command_entries qp_commands()
{
    return entries;
}

} // namespace ucxl::softhca
