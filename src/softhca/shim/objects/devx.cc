#include "devx.h"

#include <algorithm>
#include <array>
#include <utility>

#include "dc_target.h"
#include "prm/eq.h"
#include "prm/object.h"
#include "prm/resource.h"

namespace ucxl::softhca
{

namespace
{

using prm::command;

constexpr std::array modify_cq{command::modify_cq};
constexpr std::array modify_qp{
    command::rst2init_qp,  command::init2init_qp, command::init2rtr_qp, command::rtr2rts_qp, command::rts2rts_qp,
    command::sqerr2rts_qp, command::sqd_rts_qp,   command::to_err_qp,   command::to_rst_qp,
};
constexpr std::array modify_dct{command::arm_dct_for_key_violation};
constexpr std::array modify_rmp{command::modify_rmp};
constexpr std::array modify_sq{command::modify_sq};
constexpr std::array modify_tis{command::modify_tis};
constexpr std::array modify_general{command::modify_general_object};
constexpr std::array query_mkey{command::query_mkey};
constexpr std::array query_cq{command::query_cq};
constexpr std::array query_qp{command::query_qp};
constexpr std::array query_rmp{command::query_rmp};
constexpr std::array query_tis{command::query_tis};
constexpr std::array query_dct{command::query_dct};
constexpr std::array query_counter{command::query_flow_counter};
constexpr std::array query_general{command::query_general_object};

constexpr std::array classes{
    devx_class{command::create_mkey, command::destroy_mkey, {}, query_mkey},
    devx_class{command::create_cq, command::destroy_cq, modify_cq, query_cq},
    devx_class{command::create_qp, command::destroy_qp, modify_qp, query_qp},
    devx_class{command::create_rmp, command::destroy_rmp, modify_rmp, query_rmp},
    devx_class{command::create_general_object, command::destroy_general_object, modify_general, query_general},
    devx_class{command::alloc_pd, command::dealloc_pd, {}, {}},
    devx_class{command::alloc_transport_domain, command::dealloc_transport_domain, {}, {}},
    devx_class{command::alloc_q_counter, command::dealloc_q_counter, {}, {}},
    devx_class{command::alloc_flow_counter, command::dealloc_flow_counter, {}, query_counter},
    devx_class{command::alloc_xrcd, command::dealloc_xrcd, {}, {}},
    devx_class{command::create_srq, command::destroy_srq, {}, {}},
    devx_class{command::create_xrc_srq, command::destroy_xrc_srq, {}, {}},
    devx_class{command::create_xrq, command::destroy_xrq, {}, {}},
    devx_class{command::create_dct, command::destroy_dct, modify_dct, query_dct},
    devx_class{command::create_sq, command::destroy_sq, modify_sq, {}},
    devx_class{command::create_rq, command::destroy_rq, {}, {}},
    devx_class{command::create_rqt, command::destroy_rqt, {}, {}},
    devx_class{command::create_tir, command::destroy_tir, {}, {}},
    devx_class{command::create_tis, command::destroy_tis, modify_tis, query_tis},
    devx_class{command::create_psv, command::destroy_psv, {}, {}},
    devx_class{command::create_scheduling_element, command::destroy_scheduling_element, {}, {}},
};

constexpr std::array without_object{
    command::query_hca_cap,           command::query_hca_vport_context, command::query_hca_vport_gid,
    command::query_nic_vport_context, command::query_roce_address,      command::query_lag,
    command::query_esw_functions,     command::query_esw_vport_context,
};

// General commands have these numbers.
constexpr std::uint16_t first_general = 0xb00;
constexpr std::uint16_t end_general   = 0xd00;

} // namespace

const devx_class* find_devx_class(prm::command create)
{
    const auto* const found = std::ranges::find(classes, create, &devx_class::create);
    return found == classes.end() ? nullptr : found;
}

bool is_general_command(prm::command opcode)
{
    const auto number = std::to_underlying(opcode);
    return (number >= first_general && number < end_general) || std::ranges::contains(without_object, opcode);
}

bool needs_no_devx(prm::command opcode)
{
    return opcode == command::query_hca_cap || opcode == command::query_hca_vport_context;
}

// All other commands have the number in their third word; only general objects use all its bits.
devx_id id_in_command(prm::const_view<prm::any_input> input, std::span<const std::byte> bytes)
{
    constexpr std::uint32_t number_mask = 0xffffff;
    const auto opcode                   = input.get(prm::any_input::opcode);
    const auto object                   = prm::const_view<prm::general_object_in>::over(bytes);
    if (!object) {
        return {};
    }
    if (opcode == command::query_flow_counter) { // the one command that has it elsewhere
        const auto query = prm::const_view<prm::query_flow_counter_in>::over(bytes);
        return {.number = query ? query->get(prm::query_flow_counter_in::flow_counter_id) : 0};
    }
    const std::uint32_t number = object->get(prm::general_object_in::obj_id);
    const bool general         = opcode == command::modify_general_object || opcode == command::query_general_object;
    if (!general) {
        return {.number = number & number_mask};
    }
    return {.number = number, .type = std::to_underlying(object->get(prm::general_object_in::obj_type))};
}

int devx_object::release()
{
    (void)route(std::to_underlying(prm::event_type::completion), {});
    (void)route(std::to_underlying(prm::event_type::cq_error), {});
    if (kind_of.create == prm::command::create_dct) {
        return destroy_target(file, id.number);
    }
    mailbox<prm::general_object_in> input(kind_of.destroy);
    if (kind_of.destroy == prm::command::destroy_general_object) {
        input.set(prm::general_object_in::obj_type, id.type);
    }
    input.set(prm::general_object_in::obj_id, id.number);
    const int error = file.run(input);
    if (error != 0) {
        (void)route(std::to_underlying(prm::event_type::completion), _completions.route(id.number));
        (void)route(std::to_underlying(prm::event_type::cq_error), _events.route(id.number));
    }
    return error;
}

// False when objects of that class have no such event.
bool devx_object::route(std::uint32_t type, const event_route& target)
{
    const bool completion = type == std::to_underlying(prm::event_type::completion);
    switch (kind_of.create) {
    case prm::command::create_cq:
        return (completion ? file.device.route_completions(id.number, target)
                           : file.device.route_cq_errors(id.number, target))
            .has_value();
    case prm::command::create_qp:
    case prm::command::create_dct:
        return !completion && file.device.route_queue_pair(id.number, target).has_value();
    case prm::command::create_rmp:
        return !completion && file.device.route_shared_receive_queue(id.number, target).has_value();
    default:
        return false;
    }
}

int devx_object::subscribe_channel(const std::shared_ptr<event_file>& channel, std::uint16_t type, std::uint64_t cookie)
{
    const bool completion = type == std::to_underlying(prm::event_type::completion);
    event_target& target  = completion ? _completions : _events;
    if (target.channel != channel) {
        target.kinds = 0;
    }
    std::uint32_t kinds = target.kinds;
    if (!subscribe(kinds, type)) {
        return EINVAL;
    }
    event_target wanted;
    wanted.channel = channel;
    wanted.value   = cookie;
    wanted.kinds   = kinds;
    if (!route(type, wanted.route(id.number))) {
        return EINVAL;
    }
    target = std::move(wanted);
    return 0;
}

void devx_object::forget_channel(const event_file& channel)
{
    if (_completions.channel != nullptr && _completions.channel->belongs_to(channel)) {
        (void)route(std::to_underlying(prm::event_type::completion), {});
        _completions = {};
    }
    if (_events.channel != nullptr && _events.channel->belongs_to(channel)) {
        (void)route(std::to_underlying(prm::event_type::cq_error), {});
        _events = {};
    }
}

} // namespace ucxl::softhca
