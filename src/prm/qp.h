// Commands on queue pairs: create, the transitions between states, query, destroy.
//
// All transitions with a context (rst2init, init2rtr, rtr2rts, rts2rts, init2init, sqerr2rts, sqd_rts) share one
// structure; those without one (to_err, to_rst) share another.
#pragma once

#include "qpc.h"

namespace ucxl::prm
{

// The 64 bits of the enhanced connection establishment options are opaque numbers agreed by the two devices.
struct create_qp_in : command_input<create_qp_in, 272> {
    static constexpr f<0x048, 24> input_qpn{};
    static constexpr f<0x061, 1> cmd_on_behalf{};
    static constexpr f<0x070, 16> vhca_id{};
    static constexpr f<0x080, 32, qp_optional> opt_param_mask{};
    static constexpr f<0x0a0, 32> ece{};
    static constexpr part<0x0c0, prm::qpc> qpc{};
    static constexpr f<0x800, 64> wq_umem_offset{};
    static constexpr f<0x840, 32> wq_umem_id{};
    static constexpr f<0x860, 1> wq_umem_valid{};
    using fields = field_list<opcode, uid, op_mod, input_qpn, cmd_on_behalf, vhca_id, opt_param_mask, ece, qpc,
                              wq_umem_offset, wq_umem_id, wq_umem_valid>;
};
static_assert(well_formed<create_qp_in>);

struct create_qp_out : command_output<create_qp_out, 16> {
    static constexpr f<0x048, 24> qpn{};
    static constexpr f<0x060, 32> ece{};
    using fields = field_list<status, syndrome, qpn, ece>;
};
static_assert(well_formed<create_qp_out>);

struct modify_qp_in : command_input<modify_qp_in, 272> {
    static constexpr f<0x020, 16> vhca_tunnel_id{};
    static constexpr f<0x040, 1> qpc_ext{};
    static constexpr f<0x048, 24> qpn{};
    static constexpr f<0x080, 32, qp_optional> opt_param_mask{};
    static constexpr f<0x0a0, 32> ece{};
    static constexpr part<0x0c0, prm::qpc> qpc{};
    using fields = field_list<opcode, uid, vhca_tunnel_id, op_mod, qpc_ext, qpn, opt_param_mask, ece, qpc>;
};
static_assert(well_formed<modify_qp_in>);

// A transition with qpc_ext set: the extension follows the context.
struct modify_qp_ext_in : command_input<modify_qp_ext_in, 464> {
    static constexpr f<0x020, 16> vhca_tunnel_id{};
    static constexpr f<0x040, 1> qpc_ext{};
    static constexpr f<0x048, 24> qpn{};
    static constexpr f<0x080, 32, qp_optional> opt_param_mask{};
    static constexpr f<0x0a0, 32> ece{};
    static constexpr part<0x0c0, prm::qpc> qpc{};
    static constexpr f<0x840, 64> opt_param_mask_95_32{};
    static constexpr part<0x880, prm::qpc_ext> extension{};
    using fields = field_list<opcode, uid, vhca_tunnel_id, op_mod, qpc_ext, qpn, opt_param_mask, ece, qpc,
                              opt_param_mask_95_32, extension>;
};
static_assert(well_formed<modify_qp_ext_in>);

struct modify_qp_out : command_output<modify_qp_out, 16> {
    static constexpr f<0x060, 32> ece{};
    using fields = field_list<status, syndrome, ece>;
};
static_assert(well_formed<modify_qp_out>);

// The transitions to error and to reset, and destroy.
struct plain_qp_in : command_input<plain_qp_in, 16> {
    static constexpr f<0x048, 24> qpn{};
    using fields = field_list<opcode, uid, op_mod, qpn>;
};
static_assert(well_formed<plain_qp_in>);

struct query_qp_in : command_input<query_qp_in, 16> {
    static constexpr f<0x048, 24> qpn{};
    using fields = field_list<opcode, uid, op_mod, qpn>;
};
static_assert(well_formed<query_qp_in>);

struct query_qp_out : command_output<query_qp_out, 272> {
    static constexpr f<0x080, 32, qp_optional> opt_param_mask{};
    static constexpr f<0x0a0, 32> ece{};
    static constexpr part<0x0c0, prm::qpc> qpc{};
    static constexpr f<0x800, 64> e_mtt_pointer{};
    using fields = field_list<status, syndrome, opt_param_mask, ece, qpc, e_mtt_pointer>;
};
static_assert(well_formed<query_qp_out>);

enum class dct_state : std::uint8_t {
    active   = 0,
    draining = 1,
    drained  = 2,
};

template <>
struct value_names<dct_state> : one_of<dct_state::active, dct_state::draining, dct_state::drained> {
};

// The target of dynamic connections (DCT).
struct dctc : structure<dctc, 112> {
    static constexpr f<0x004, 4, dct_state> state{};
    static constexpr f<0x018, 4> offload_type{};
    static constexpr f<0x01d, 1> data_in_order{};
    static constexpr f<0x027, 1> dp_ordering_force{};
    static constexpr f<0x028, 24> user_index{};
    static constexpr f<0x048, 24> cqn{};
    static constexpr f<0x060, 8> counter_set_id{};
    static constexpr f<0x068, 4, prm::atomic_mode> atomic_mode{};
    static constexpr f<0x06c, 1> rre{};
    static constexpr f<0x06d, 1> rwe{};
    static constexpr f<0x06e, 1> rae{};
    static constexpr f<0x06f, 1> atomic_like_write_en{};
    static constexpr f<0x070, 1> latency_sensitive{};
    static constexpr f<0x071, 1> rlkey{};
    static constexpr f<0x072, 1> force_full_handshake{};
    static constexpr f<0x073, 1> dp_ordering_0{};
    static constexpr f<0x074, 1> dp_ordering_1{};
    static constexpr f<0x088, 8, scatter_to_cqe> cs_res{};
    static constexpr f<0x093, 5> min_rnr_nak{};
    static constexpr f<0x0a8, 24> srqn_xrqn{};
    static constexpr f<0x0c8, 24> pd{};
    static constexpr f<0x0e0, 8> tclass{};
    static constexpr f<0x0ec, 20> flow_label{};
    static constexpr f<0x100, 64> dc_access_key{};
    static constexpr f<0x145, 3, path_mtu> mtu{};
    static constexpr f<0x148, 8> port{};
    static constexpr f<0x150, 16> pkey_index{};
    static constexpr f<0x168, 8> my_addr_index{};
    static constexpr f<0x178, 8> hop_limit{};
    static constexpr f<0x180, 32> dc_access_key_violation_count{};
    static constexpr f<0x1b4, 1> dei_cfi{};
    static constexpr f<0x1b5, 3> eth_prio{};
    static constexpr f<0x1b8, 2> ecn{};
    static constexpr f<0x1ba, 6> dscp{};
    static constexpr f<0x200, 32> ece{};
    using fields = field_list<state, offload_type, data_in_order, dp_ordering_force, user_index, cqn, counter_set_id,
                              atomic_mode, rre, rwe, rae, atomic_like_write_en, latency_sensitive, rlkey,
                              force_full_handshake, dp_ordering_0, dp_ordering_1, cs_res, min_rnr_nak, srqn_xrqn, pd,
                              tclass, flow_label, dc_access_key, mtu, port, pkey_index, my_addr_index, hop_limit,
                              dc_access_key_violation_count, dei_cfi, eth_prio, ecn, dscp, ece>;
};
static_assert(well_formed<dctc>);

struct create_dct_in : command_input<create_dct_in, 176> {
    static constexpr part<0x080, dctc> dct_context{};
    using fields = field_list<opcode, uid, op_mod, dct_context>;
};
static_assert(well_formed<create_dct_in>);

struct create_dct_out : command_output<create_dct_out, 16> {
    static constexpr f<0x048, 24> dctn{};
    static constexpr f<0x060, 32> ece{};
    using fields = field_list<status, syndrome, dctn, ece>;
};
static_assert(well_formed<create_dct_out>);

// Drain, arm for key violations, query, destroy.
struct plain_dct_in : command_input<plain_dct_in, 16> {
    static constexpr f<0x048, 24> dctn{};
    using fields = field_list<opcode, uid, op_mod, dctn>;
};
static_assert(well_formed<plain_dct_in>);

struct query_dct_out : command_output<query_dct_out, 128> {
    static constexpr part<0x080, dctc> dct_context{};
    using fields = field_list<status, syndrome, dct_context>;
};
static_assert(well_formed<query_dct_out>);

} // namespace ucxl::prm
