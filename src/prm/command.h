// Commands: opcodes, the first words of every command and every answer, and the status codes.
//
// A command is an input mailbox and an output mailbox of big-endian words. What follows the first words is declared in
// the header of the object (mkey.h, qp.h, cq.h, ...). An answer with a status other than ok has nothing else.
//
//     auto input = const_view<any_input>::over(bytes);
//     if (input && input->get(any_input::opcode) == command::create_mkey)
//         auto create = const_view<create_mkey_in>::over(bytes);
#pragma once

#include "names.h"
#include "view.h"

namespace ucxl::prm
{

enum class command : std::uint16_t {
    query_hca_cap              = 0x100,
    init_hca                   = 0x102,
    teardown_hca               = 0x103,
    enable_hca                 = 0x104,
    query_pages                = 0x107,
    manage_pages               = 0x108,
    set_hca_cap                = 0x109,
    query_issi                 = 0x10a,
    set_issi                   = 0x10b,
    create_mkey                = 0x200,
    query_mkey                 = 0x201,
    destroy_mkey               = 0x202,
    query_special_contexts     = 0x203,
    create_eq                  = 0x301,
    destroy_eq                 = 0x302,
    create_cq                  = 0x400,
    destroy_cq                 = 0x401,
    query_cq                   = 0x402,
    modify_cq                  = 0x403,
    create_qp                  = 0x500,
    destroy_qp                 = 0x501,
    rst2init_qp                = 0x502,
    init2rtr_qp                = 0x503,
    rtr2rts_qp                 = 0x504,
    rts2rts_qp                 = 0x505,
    sqerr2rts_qp               = 0x506,
    to_err_qp                  = 0x507,
    to_rst_qp                  = 0x50a,
    query_qp                   = 0x50b,
    sqd_rts_qp                 = 0x50c,
    mad_ifc                    = 0x50d,
    init2init_qp               = 0x50e,
    create_psv                 = 0x600,
    destroy_psv                = 0x601,
    create_srq                 = 0x700,
    destroy_srq                = 0x701,
    create_xrc_srq             = 0x705,
    destroy_xrc_srq            = 0x706,
    create_dct                 = 0x710,
    destroy_dct                = 0x711,
    drain_dct                  = 0x712,
    query_dct                  = 0x713,
    arm_dct_for_key_violation  = 0x714,
    create_xrq                 = 0x717,
    destroy_xrq                = 0x718,
    set_xrq_dc_params_entry    = 0x726,
    query_esw_functions        = 0x740,
    query_esw_vport_context    = 0x752,
    query_nic_vport_context    = 0x754,
    modify_nic_vport_context   = 0x755,
    query_roce_address         = 0x760,
    query_hca_vport_context    = 0x762,
    query_hca_vport_gid        = 0x764,
    alloc_q_counter            = 0x771,
    dealloc_q_counter          = 0x772,
    create_scheduling_element  = 0x782,
    destroy_scheduling_element = 0x783,
    alloc_pd                   = 0x800,
    dealloc_pd                 = 0x801,
    alloc_uar                  = 0x802,
    dealloc_uar                = 0x803,
    access_register            = 0x805,
    attach_to_mcg              = 0x806,
    detach_from_mcg            = 0x807,
    alloc_xrcd                 = 0x80e,
    dealloc_xrcd               = 0x80f,
    alloc_transport_domain     = 0x816,
    dealloc_transport_domain   = 0x817,
    query_lag                  = 0x842,
    create_tir                 = 0x900,
    destroy_tir                = 0x902,
    create_sq                  = 0x904,
    modify_sq                  = 0x905,
    destroy_sq                 = 0x906,
    create_rq                  = 0x908,
    destroy_rq                 = 0x90a,
    create_rmp                 = 0x90c,
    modify_rmp                 = 0x90d,
    destroy_rmp                = 0x90e,
    query_rmp                  = 0x90f,
    create_tis                 = 0x912,
    modify_tis                 = 0x913,
    destroy_tis                = 0x914,
    query_tis                  = 0x915,
    create_rqt                 = 0x916,
    destroy_rqt                = 0x918,
    alloc_flow_counter         = 0x939,
    dealloc_flow_counter       = 0x93a,
    query_flow_counter         = 0x93b,
    create_general_object      = 0xa00,
    modify_general_object      = 0xa01,
    query_general_object       = 0xa02,
    destroy_general_object     = 0xa03,
    create_umem                = 0xa08,
    destroy_umem               = 0xa0a,
    sync_steering              = 0xb00,
    allow_other_vhca_access    = 0xb16,
};

template <>
struct value_names<command>
    : one_of<command::query_hca_cap, command::init_hca, command::teardown_hca, command::enable_hca,
             command::query_pages, command::manage_pages, command::set_hca_cap, command::query_issi, command::set_issi,
             command::create_mkey, command::query_mkey, command::destroy_mkey, command::query_special_contexts,
             command::create_eq, command::destroy_eq, command::create_cq, command::destroy_cq, command::query_cq,
             command::modify_cq, command::create_qp, command::destroy_qp, command::rst2init_qp, command::init2rtr_qp,
             command::rtr2rts_qp, command::rts2rts_qp, command::sqerr2rts_qp, command::to_err_qp, command::to_rst_qp,
             command::query_qp, command::sqd_rts_qp, command::mad_ifc, command::init2init_qp, command::create_psv,
             command::destroy_psv, command::create_srq, command::destroy_srq, command::create_xrc_srq,
             command::destroy_xrc_srq, command::create_dct, command::destroy_dct, command::drain_dct,
             command::query_dct, command::arm_dct_for_key_violation, command::create_xrq, command::destroy_xrq,
             command::set_xrq_dc_params_entry, command::query_esw_functions, command::query_esw_vport_context,
             command::query_nic_vport_context, command::modify_nic_vport_context, command::query_roce_address,
             command::query_hca_vport_context, command::query_hca_vport_gid, command::alloc_q_counter,
             command::dealloc_q_counter, command::create_scheduling_element, command::destroy_scheduling_element,
             command::alloc_pd, command::dealloc_pd, command::alloc_uar, command::dealloc_uar, command::access_register,
             command::attach_to_mcg, command::detach_from_mcg, command::alloc_xrcd, command::dealloc_xrcd,
             command::alloc_transport_domain, command::dealloc_transport_domain, command::query_lag,
             command::create_tir, command::destroy_tir, command::create_sq, command::modify_sq, command::destroy_sq,
             command::create_rq, command::destroy_rq, command::create_rmp, command::modify_rmp, command::destroy_rmp,
             command::query_rmp, command::create_tis, command::modify_tis, command::destroy_tis, command::query_tis,
             command::create_rqt, command::destroy_rqt, command::alloc_flow_counter, command::dealloc_flow_counter,
             command::query_flow_counter, command::create_general_object, command::modify_general_object,
             command::query_general_object, command::destroy_general_object, command::create_umem,
             command::destroy_umem, command::sync_steering, command::allow_other_vhca_access> {
};

enum class command_status : std::uint8_t {
    ok                       = 0x00,
    internal_error           = 0x01,
    bad_operation            = 0x02,
    bad_parameter            = 0x03,
    bad_system_state         = 0x04,
    bad_resource             = 0x05,
    resource_busy            = 0x06,
    limit_exceeded           = 0x08,
    bad_resource_state       = 0x09,
    bad_index                = 0x0a,
    no_resources             = 0x0f,
    bad_qp_state             = 0x10,
    bad_packet               = 0x30,
    bad_size_outstanding_cqe = 0x40,
    bad_input_length         = 0x50,
    bad_output_length        = 0x51,
};

template <>
struct value_names<command_status>
    : one_of<command_status::ok, command_status::internal_error, command_status::bad_operation,
             command_status::bad_parameter, command_status::bad_system_state, command_status::bad_resource,
             command_status::resource_busy, command_status::limit_exceeded, command_status::bad_resource_state,
             command_status::bad_index, command_status::no_resources, command_status::bad_qp_state,
             command_status::bad_packet, command_status::bad_size_outstanding_cqe, command_status::bad_input_length,
             command_status::bad_output_length> {
};

// The beginning of every input mailbox.
template <typename Self, unsigned SizeBytes>
struct command_input : structure<Self, SizeBytes> {
    static constexpr field<Self, 0x00, 16, command, false> opcode{};
    static constexpr field<Self, 0x10, 16, std::uint16_t, false> uid{};
    static constexpr field<Self, 0x30, 16, std::uint16_t, false> op_mod{};

private:
    command_input() = default;
    friend Self;
};

// The beginning of every output mailbox. The syndrome is the device's own code for what it refused; 0 for nothing.
template <typename Self, unsigned SizeBytes>
struct command_output : structure<Self, SizeBytes> {
    static constexpr field<Self, 0x00, 8, command_status, false> status{};
    static constexpr field<Self, 0x20, 32, std::uint32_t, false> syndrome{};

private:
    command_output() = default;
    friend Self;
};

// Any command, by its first words.
struct any_input : command_input<any_input, 8> {
    using fields = field_list<opcode, uid, op_mod>;
};
static_assert(well_formed<any_input>);

// An answer with a status only.
struct any_output : command_output<any_output, 16> {
    using fields = field_list<status, syndrome>;
};
static_assert(well_formed<any_output>);

} // namespace ucxl::prm
