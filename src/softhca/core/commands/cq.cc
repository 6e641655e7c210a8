// Completion queues: create, query, modify, destroy.
#include "prm/cq.h"

#include <utility>

#include "call.h"
#include "prm/doorbell.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/queues/completion.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using create_in = prm::const_view<prm::create_cq_in>;

command_status check_context(command_call& call, prm::const_view<prm::cqc> context)
{
    if (context.get(prm::cqc::log_cq_size) > log_max_cq_size) {
        return call.refuse(command_status::limit_exceeded, "log_cq_size");
    }
    const prm::cqe_size size = context.get(prm::cqc::cqe_sz);
    if (size != prm::cqe_size::bytes_64 && size != prm::cqe_size::bytes_128 &&
        size != prm::cqe_size::bytes_128_padded) {
        return call.refuse(command_status::bad_parameter, "cqe_sz");
    }
    if (context.get(prm::cqc::cqe_compression_en) || context.get(prm::cqc::cqe_comp_layout) != 0) {
        return call.refuse(command_status::bad_parameter, "compression is not modelled");
    }
    if (context.get(prm::cqc::as_notify)) {
        return call.refuse(command_status::bad_parameter, "events go to event queues only");
    }
    return command_status::ok;
}

// The memory of the CQEs, which the device writes, and of the doorbell record, which it reads.
command_status take_memory(command_call& call, create_in input, cq_record& cq)
{
    const auto context = input.at(prm::create_cq_in::cqc);
    if (!input.get(prm::create_cq_in::cq_umem_valid) || !context.get(prm::cqc::dbr_umem_valid)) {
        return call.refuse(command_status::bad_parameter, "page lists are not modelled: use umems");
    }
    cq.umem                    = input.get(prm::create_cq_in::cq_umem_id);
    cq.doorbell_umem           = context.get(prm::cqc::dbr_umem_id);
    const std::uint64_t length = std::uint64_t{cq.entry_size} << cq.log_size;
    const auto buffer          = umem_range(call, cq.umem, input.get(prm::create_cq_in::cq_umem_offset), length);
    if (!buffer) {
        return call.refuse(command_status::bad_resource, "no such umem for entries, or it is too short");
    }
    if (!is_writable(call, cq.umem)) {
        return call.refuse(command_status::bad_parameter, "the umem for entries is for reading only");
    }
    const std::uint64_t place = context.get(prm::cqc::dbr_addr);
    const auto doorbell       = umem_range(call, cq.doorbell_umem, place, prm::cq_doorbell_record::size_bytes);
    if (!doorbell) {
        return call.refuse(command_status::bad_resource, "no such umem for the doorbell record, or it is too short");
    }
    if (doorbell->address % prm::cq_doorbell_record::size_bytes != 0) {
        return call.refuse(command_status::bad_parameter, "the doorbell record is not aligned");
    }
    cq.buffer   = *buffer;
    cq.doorbell = *doorbell;
    return command_status::ok;
}

command_status create_cq(command_call& call, create_in input, prm::view<prm::create_cq_out> output)
{
    arena& memory      = call.memory();
    const auto context = input.at(prm::create_cq_in::cqc);
    if (const auto status = check_context(call, context); status != command_status::ok) {
        return status;
    }
    cq_record cq;
    cq.log_size       = context.get(prm::cqc::log_cq_size);
    cq.entry_size     = context.get(prm::cqc::cqe_sz) == prm::cqe_size::bytes_64 ? 64 : 128;
    cq.overrun_ignore = context.get(prm::cqc::oi);
    cq.collapsed      = context.get(prm::cqc::cc);
    cq.uar            = context.get(prm::cqc::uar_page);
    cq.eqn            = context.get(prm::cqc::c_eqn);
    if (const auto status = take_memory(call, input, cq); status != command_status::ok) {
        return status;
    }
    if (!owns_uar(call, cq.uar)) {
        return call.refuse(command_status::bad_resource, "no such doorbell page");
    }
    std::ranges::transform(context.span(), cq.context.begin(),
                           [](std::byte one) { return std::to_integer<std::uint8_t>(one); });
    const std::uint32_t id = find_room(call, memory.cqs);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all completion queues are taken");
    }
    fresh(memory.cqs, id) = cq;
    hold(memory.umems, cq.umem);
    hold(memory.umems, cq.doorbell_umem);
    hold(memory.uars, cq.uar);
    publish(memory.cqs, id, call.owner());
    (void)output.set(prm::create_cq_out::cqn, id);
    return command_status::ok;
}

prm::queue_arm_state arm_state(const cq_record& cq)
{
    switch (cq.armed) {
    case cq_arm::none:
        break;
    case cq_arm::any_completion:
        return prm::queue_arm_state::armed;
    case cq_arm::solicited_only:
        return prm::queue_arm_state::solicited_armed;
    }
    return prm::queue_arm_state::fired;
}

command_status query_cq(command_call& call, prm::const_view<prm::plain_cq_in> input,
                        prm::view<prm::query_cq_out> output)
{
    const cq_record* const cq = own(call, call.memory().cqs, input.get(prm::plain_cq_in::cqn));
    if (cq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue");
    }
    const auto context = output.at(prm::query_cq_out::cqc);
    std::ranges::transform(cq->context, context.span().begin(), [](std::uint8_t one) { return std::byte{one}; });
    (void)context.set(prm::cqc::status, cq->overflowed ? prm::queue_status::overflow : prm::queue_status::ok);
    (void)context.set(prm::cqc::st, arm_state(*cq));
    context.put(prm::cqc::oi, cq->overrun_ignore);
    (void)context.set(prm::cqc::producer_counter, cq->producer & 0xffffff);
    return command_status::ok;
}

// After a resize CQEs go to the new buffer. The last CQE of the old buffer is a marker, which takes an index of its
// own. The owner copies the CQEs that it has not consumed, up to the marker.
command_status resize(command_call& call, prm::const_view<prm::modify_cq_in> input, cq_record& cq)
{
    const std::uint32_t cqn  = input.get(prm::modify_cq_in::cqn);
    const std::uint32_t umem = input.get(prm::modify_cq_in::cq_umem_id);
    const std::uint8_t size  = input.at(prm::modify_cq_in::cqc).get(prm::cqc::log_cq_size);
    if (size > log_max_cq_size) {
        return call.refuse(command_status::limit_exceeded, "log_cq_size");
    }
    const auto buffer =
        umem_range(call, umem, input.get(prm::modify_cq_in::cq_umem_offset), std::uint64_t{cq.entry_size} << size);
    if (!input.get(prm::modify_cq_in::cq_umem_valid) || !buffer || !is_writable(call, umem)) {
        return call.refuse(command_status::bad_resource, "no such umem for entries, or too short, or for reading only");
    }
    const auto waiting = entries_waiting(call.device, cq);
    if (cq.collapsed || cq.overflowed || !waiting) {
        return call.refuse(command_status::bad_resource_state, "its entries cannot be moved");
    }
    if (*waiting >= 1U << cq.log_size || *waiting >= 1U << size) {
        return call.refuse(command_status::bad_size_outstanding_cqe, "more entries wait than there is room for");
    }
    completion marker;
    (*marker.entry).put<prm::cqe_opcode::resize_cq>(prm::cqe64::opcode);
    const cq_arm armed = std::exchange(cq.armed, cq_arm::none); // the marker causes no event
    const bool written = complete(call.device, cqn, marker);
    cq.armed           = armed;
    if (!written) {
        return call.refuse(command_status::bad_resource_state, "its entries cannot be moved");
    }
    let_go(call.memory().umems, cq.umem);
    hold(call.memory().umems, umem);
    cq.umem     = umem;
    cq.buffer   = *buffer;
    cq.log_size = size;
    (void)prm::view<prm::cqc>::over(std::as_writable_bytes(std::span(cq.context)))->set(prm::cqc::log_cq_size, size);
    return command_status::ok;
}

// Only changes that take effect at once. CQEs are written immediately, so moderation is refused, as the capabilities
// say.
command_status modify_cq(command_call& call, prm::const_view<prm::modify_cq_in> input, prm::view<prm::any_output>)
{
    cq_record* const cq = own(call, call.memory().cqs, input.get(prm::modify_cq_in::cqn));
    if (cq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue");
    }
    if (input.get(prm::modify_cq_in::op_mod) == 1) {
        return resize(call, input, *cq);
    }
    if (input.get(prm::modify_cq_in::op_mod) != 0) {
        return call.refuse(command_status::bad_parameter, "op_mod");
    }
    constexpr auto known = std::to_underlying(prm::cq_modify::oi) | std::to_underlying(prm::cq_modify::c_eqn);
    const auto wanted    = std::to_underlying(input.get(prm::modify_cq_in::modify_field_select));
    if ((wanted & ~known) != 0) {
        return call.refuse(command_status::bad_parameter, "modify_field_select");
    }
    const auto context = input.at(prm::modify_cq_in::cqc);
    if ((wanted & std::to_underlying(prm::cq_modify::oi)) != 0) {
        cq->overrun_ignore = context.get(prm::cqc::oi);
    }
    if ((wanted & std::to_underlying(prm::cq_modify::c_eqn)) != 0) {
        cq->eqn = context.get(prm::cqc::c_eqn);
    }
    return command_status::ok;
}

command_status destroy_cq(command_call& call, prm::const_view<prm::plain_cq_in> input, prm::view<prm::any_output>)
{
    arena& memory          = call.memory();
    const std::uint32_t id = input.get(prm::plain_cq_in::cqn);
    cq_record* const cq    = own(call, memory.cqs, id);
    if (cq == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue");
    }
    if (cq->users != 0) {
        return call.refuse(command_status::bad_resource_state, "queue pairs use it");
    }
    retire(memory.cqs, id);
    let_go(memory.umems, cq->umem);
    let_go(memory.umems, cq->doorbell_umem);
    let_go(memory.uars, cq->uar);
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::create_cq_in, prm::create_cq_out, create_cq>(prm::command::create_cq),
    entry<prm::plain_cq_in, prm::query_cq_out, query_cq>(prm::command::query_cq),
    entry<prm::modify_cq_in, prm::any_output, modify_cq>(prm::command::modify_cq),
    entry<prm::plain_cq_in, prm::any_output, destroy_cq>(prm::command::destroy_cq),
};

} // namespace

command_entries cq_commands()
{
    return entries;
}

} // namespace ucxl::softhca
