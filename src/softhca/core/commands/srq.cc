// Shared receive queues. The device knows them as receive memory pools (RMP). In a work queue of type linked_list each
// entry starts with a link, in a cyclic one it does not.
#include "call.h"
#include "prm/doorbell.h"
#include "prm/rq.h"
#include "softhca/core/arena/limits.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

command_status check_queue(command_call& call, prm::const_view<prm::wq> queue)
{
    const prm::wq_type type = queue.get(prm::wq::wq_type);
    if (type != prm::wq_type::linked_list && type != prm::wq_type::cyclic) {
        return call.refuse(command_status::bad_parameter, "striding queues are not modelled");
    }
    if (queue.get(prm::wq::wq_signature)) {
        return call.refuse(command_status::bad_parameter, "signatures are not modelled");
    }
    const unsigned stride = queue.get(prm::wq::log_wq_stride);
    if (stride < 4 || (1U << stride) > max_receive_wqe_bytes) {
        return call.refuse(command_status::bad_parameter, "log_wq_stride");
    }
    if (queue.get(prm::wq::log_wq_sz) > log_max_srq_size) {
        return call.refuse(command_status::limit_exceeded, "log_wq_sz");
    }
    if (own(call, call.memory().pds, queue.get(prm::wq::pd)) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such protection domain");
    }
    if (!queue.get(prm::wq::wq_umem_valid) || !queue.get(prm::wq::dbr_umem_valid)) {
        return call.refuse(command_status::bad_parameter, "page lists are not modelled: use umems");
    }
    return command_status::ok;
}

command_status take_memory(command_call& call, prm::const_view<prm::wq> queue, srq_record& srq)
{
    const std::uint64_t length = std::uint64_t{1} << (srq.log_size + srq.log_stride);
    const auto buffer          = umem_range(call, srq.umem, 0, length);
    const auto doorbell =
        umem_range(call, srq.doorbell_umem, queue.get(prm::wq::dbr_addr), prm::srq_doorbell_record::size_bytes);
    if (!buffer || !doorbell) {
        return call.refuse(command_status::bad_resource, "no such umem, or it is too short");
    }
    if (doorbell->address % prm::srq_doorbell_record::size_bytes != 0) {
        return call.refuse(command_status::bad_parameter, "the doorbell record is not aligned");
    }
    srq.buffer   = *buffer;
    srq.doorbell = *doorbell;
    return command_status::ok;
}

command_status create_rmp(command_call& call, prm::const_view<prm::create_rmp_in> input,
                          prm::view<prm::create_rmp_out> output)
{
    arena& memory      = call.memory();
    const auto context = input.at(prm::create_rmp_in::rmp_context);
    const auto queue   = context.at(prm::rmpc::wq);
    if (context.get(prm::rmpc::state) != prm::rmp_state::ready) {
        return call.refuse(command_status::bad_parameter, "state");
    }
    if (const auto status = check_queue(call, queue); status != command_status::ok) {
        return status;
    }
    srq_record srq;
    srq.is_rmp        = true;
    srq.linked        = queue.get(prm::wq::wq_type) == prm::wq_type::linked_list;
    srq.headed        = srq.linked || !context.get(prm::rmpc::basic_cyclic_rcv_wqe);
    srq.log_size      = queue.get(prm::wq::log_wq_sz);
    srq.log_stride    = queue.get(prm::wq::log_wq_stride);
    srq.limit         = queue.get(prm::wq::lwm);
    srq.pd            = queue.get(prm::wq::pd);
    srq.umem          = queue.get(prm::wq::wq_umem_id);
    srq.doorbell_umem = queue.get(prm::wq::dbr_umem_id);
    if (const auto status = take_memory(call, queue, srq); status != command_status::ok) {
        return status;
    }
    const std::uint32_t id = find_room(call, memory.srqs);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all shared receive queues are taken");
    }
    fresh(memory.srqs, id) = srq;
    hold(memory.pds, srq.pd);
    hold(memory.umems, srq.umem);
    hold(memory.umems, srq.doorbell_umem);
    publish(memory.srqs, id, call.owner());
    (void)output.set(prm::create_rmp_out::rmpn, id);
    return command_status::ok;
}

command_status modify_rmp(command_call& call, prm::const_view<prm::modify_rmp_in> input, prm::view<prm::any_output>)
{
    srq_record* const srq = own(call, call.memory().srqs, input.get(prm::modify_rmp_in::rmpn));
    if (srq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such shared receive queue");
    }
    const prm::rmp_state now = srq->failed ? prm::rmp_state::error : prm::rmp_state::ready;
    if (input.get(prm::modify_rmp_in::rmp_state) != now) {
        return call.refuse(command_status::bad_resource_state, "not in the state the command says");
    }
    constexpr std::uint64_t low_water_mark = 1;
    const std::uint64_t wanted             = input.get(prm::modify_rmp_in::modify_bitmask);
    const auto context                     = input.at(prm::modify_rmp_in::rmp_context);
    const prm::rmp_state next              = context.get(prm::rmpc::state);
    if ((wanted & ~low_water_mark) != 0 || (next != now && next != prm::rmp_state::error)) {
        return call.refuse(command_status::bad_parameter, "only the low water mark and the error state can be set");
    }
    if ((wanted & low_water_mark) != 0) {
        const std::uint16_t limit = context.at(prm::rmpc::wq).get(prm::wq::lwm);
        if (limit > 1U << srq->log_size) {
            return call.refuse(command_status::bad_parameter, "the low water mark is above the queue's size");
        }
        srq->limit = limit;
    }
    srq->failed = next == prm::rmp_state::error;
    return command_status::ok;
}

command_status query_rmp(command_call& call, prm::const_view<prm::plain_rmp_in> input,
                         prm::view<prm::query_rmp_out> output)
{
    const srq_record* const srq = own(call, call.memory().srqs, input.get(prm::plain_rmp_in::rmpn));
    if (srq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such shared receive queue");
    }
    const auto context = output.at(prm::query_rmp_out::rmp_context);
    const auto queue   = context.at(prm::rmpc::wq);
    (void)context.set(prm::rmpc::state, srq->failed ? prm::rmp_state::error : prm::rmp_state::ready);
    (void)queue.set(prm::wq::wq_type, srq->linked ? prm::wq_type::linked_list : prm::wq_type::cyclic);
    queue.put(prm::wq::lwm, srq->limit);
    (void)queue.set(prm::wq::pd, srq->pd);
    queue.put(prm::wq::hw_counter, std::uint32_t{srq->consumed});
    (void)queue.set(prm::wq::log_wq_stride, srq->log_stride);
    (void)queue.set(prm::wq::log_wq_sz, srq->log_size);
    return command_status::ok;
}

command_status destroy_rmp(command_call& call, prm::const_view<prm::plain_rmp_in> input, prm::view<prm::any_output>)
{
    arena& memory          = call.memory();
    const std::uint32_t id = input.get(prm::plain_rmp_in::rmpn);
    srq_record* const srq  = own(call, memory.srqs, id);
    if (srq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such shared receive queue");
    }
    if (srq->users != 0) {
        return call.refuse(command_status::bad_resource_state, "queue pairs use it");
    }
    retire(memory.srqs, id);
    let_go(memory.pds, srq->pd);
    let_go(memory.umems, srq->umem);
    let_go(memory.umems, srq->doorbell_umem);
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::create_rmp_in, prm::create_rmp_out, create_rmp>(prm::command::create_rmp),
    entry<prm::modify_rmp_in, prm::any_output, modify_rmp>(prm::command::modify_rmp),
    entry<prm::plain_rmp_in, prm::query_rmp_out, query_rmp>(prm::command::query_rmp),
    entry<prm::plain_rmp_in, prm::any_output, destroy_rmp>(prm::command::destroy_rmp),
};

} // namespace

command_entries srq_commands()
{
    return entries;
}

} // namespace ucxl::softhca
