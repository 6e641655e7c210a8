// Targets of dynamic connections (DCT): create, drain, destroy, query, arm.
#include "call.h"
#include "prm/qp.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/queues/async_events.h"
#include "softhca/core/queues/completion.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using prm::dctc;
using context_view = prm::const_view<dctc>;

qp_record* own_target(const command_call& call, std::uint32_t id)
{
    qp_record* const found = own(call, call.memory().qps, id);
    return found != nullptr && found->dc.target ? found : nullptr;
}

command_status no_such_target(command_call& call)
{
    return call.refuse(command_status::bad_resource, "no such DC target");
}

command_status check_fields(command_call& call, context_view context)
{
    if (context.get(dctc::state) != prm::dct_state::active) {
        return call.refuse(command_status::bad_parameter, "state");
    }
    if (context.get(dctc::offload_type) != 0) {
        return call.refuse(command_status::bad_parameter, "tag matching is not modelled");
    }
    if (context.get(dctc::rlkey)) {
        return call.refuse(command_status::bad_parameter, "the reserved lkey is the kernel's");
    }
    if (context.get(dctc::atomic_mode) > prm::atomic_mode::up_to_8b) {
        return call.refuse(command_status::bad_parameter, "atomic_mode");
    }
    const prm::path_mtu mtu = context.get(dctc::mtu);
    if (mtu < prm::path_mtu::bytes_256 || mtu > prm::path_mtu::bytes_4096) {
        return call.refuse(command_status::bad_parameter, "mtu");
    }
    if (context.get(dctc::port) != 1) {
        return call.refuse(command_status::bad_parameter, "there is one port, number 1");
    }
    if (context.get(dctc::pkey_index) >= pkey_table_entries) {
        return call.refuse(command_status::bad_parameter, "pkey_index");
    }
    if (context.get(dctc::my_addr_index) >= gid_table_entries) {
        return call.refuse(command_status::bad_parameter, "my_addr_index");
    }
    return command_status::ok;
}

command_status check_references(command_call& call, const qp_record& made)
{
    arena& memory = call.memory();
    if (own(call, memory.pds, made.pd) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such protection domain");
    }
    if (own(call, memory.cqs, made.receive_cq) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such completion queue");
    }
    if (own(call, memory.srqs, made.srq) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such shared receive queue");
    }
    return command_status::ok;
}

qp_record target_with(context_view context)
{
    qp_record made;
    made.service            = prm::qp_service::dci;
    made.state              = prm::qp_state::rtr;
    made.pd                 = context.get(dctc::pd);
    made.receive_cq         = context.get(dctc::cqn);
    made.srq                = context.get(dctc::srqn_xrqn);
    made.user_index         = context.get(dctc::user_index);
    made.path.mtu           = static_cast<std::uint8_t>(context.get(dctc::mtu));
    made.min_rnr_timer      = context.get(dctc::min_rnr_nak);
    made.remote_read        = context.get(dctc::rre);
    made.remote_write       = context.get(dctc::rwe);
    made.remote_atomic      = context.get(dctc::rae);
    made.dc.target          = true;
    made.dc.access_key      = context.get(dctc::dc_access_key);
    made.communication_told = true; // there is no such event of a target
    std::ranges::copy(context.span(), std::as_writable_bytes(std::span(made.context)).begin());
    return made;
}

command_status create_dct(command_call& call, prm::const_view<prm::create_dct_in> input,
                          prm::view<prm::create_dct_out> output)
{
    arena& memory              = call.memory();
    const context_view context = input.at(prm::create_dct_in::dct_context);
    if (const auto status = check_fields(call, context); status != command_status::ok) {
        return status;
    }
    const qp_record made = target_with(context);
    if (const auto status = check_references(call, made); status != command_status::ok) {
        return status;
    }
    const std::uint32_t id = find_room(call, memory.qps);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all queue pairs and DC targets are taken");
    }
    fresh(memory.qps, id) = made;
    hold(memory.pds, made.pd);
    hold(memory.cqs, made.receive_cq);
    hold(memory.srqs, made.srq);
    publish(memory.qps, id, call.owner());
    (void)output.set(prm::create_dct_out::dctn, id);
    return command_status::ok;
}

// A request is executed while the lock is held, or in turns that find the target anew. So there is no connection to
// wait for: requests of which a part was done get no further answer.
command_status drain_dct(command_call& call, prm::const_view<prm::plain_dct_in> input, prm::view<prm::any_output>)
{
    qp_record* const target = own_target(call, input.get(prm::plain_dct_in::dctn));
    if (target == nullptr) {
        return no_such_target(call);
    }
    if (target->state != prm::qp_state::rtr) {
        return call.refuse(command_status::bad_resource_state, "the target is drained");
    }
    target->state = prm::qp_state::reset;
    notify_queue_pair(call.device, *target, prm::event_type::dct_drained);
    return command_status::ok;
}

command_status destroy_dct(command_call& call, prm::const_view<prm::plain_dct_in> input, prm::view<prm::any_output>)
{
    arena& memory                 = call.memory();
    const std::uint32_t id        = input.get(prm::plain_dct_in::dctn);
    const qp_record* const target = own_target(call, id);
    if (target == nullptr) {
        return no_such_target(call);
    }
    if (target->state != prm::qp_state::reset) {
        return call.refuse(command_status::bad_resource_state, "the target is not drained");
    }
    release_completions(call.device, *target);
    retire(memory.qps, id);
    let_go(memory.pds, target->pd);
    let_go(memory.cqs, target->receive_cq);
    let_go(memory.srqs, target->srq);
    return command_status::ok;
}

command_status query_dct(command_call& call, prm::const_view<prm::plain_dct_in> input,
                         prm::view<prm::query_dct_out> output)
{
    const qp_record* const target = own_target(call, input.get(prm::plain_dct_in::dctn));
    if (target == nullptr) {
        return no_such_target(call);
    }
    const auto context = output.at(prm::query_dct_out::dct_context);
    std::ranges::copy(std::as_bytes(std::span(target->context)).first<dctc::size_bytes>(), context.span().begin());
    (void)context.set(dctc::state,
                      target->state == prm::qp_state::rtr ? prm::dct_state::active : prm::dct_state::drained);
    context.put(dctc::dc_access_key_violation_count, target->dc.violations);
    return command_status::ok;
}

command_status arm_dct(command_call& call, prm::const_view<prm::plain_dct_in> input, prm::view<prm::any_output>)
{
    qp_record* const target = own_target(call, input.get(prm::plain_dct_in::dctn));
    if (target == nullptr) {
        return no_such_target(call);
    }
    target->dc.armed = true;
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::create_dct_in, prm::create_dct_out, create_dct>(prm::command::create_dct),
    entry<prm::plain_dct_in, prm::any_output, drain_dct>(prm::command::drain_dct),
    entry<prm::plain_dct_in, prm::any_output, destroy_dct>(prm::command::destroy_dct),
    entry<prm::plain_dct_in, prm::query_dct_out, query_dct>(prm::command::query_dct),
    entry<prm::plain_dct_in, prm::any_output, arm_dct>(prm::command::arm_dct_for_key_violation),
};

} // namespace

command_entries dct_commands()
{
    return entries;
}

} // namespace ucxl::softhca
