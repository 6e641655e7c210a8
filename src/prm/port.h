// Ports and their virtual functions: the vport context, GIDs, link aggregation, management datagrams, and the register
// of the port's state.
#pragma once

#include "command.h"

namespace ucxl::prm
{

struct query_hca_vport_context_in : command_input<query_hca_vport_context_in, 16> {
    static constexpr f<0x040, 1> other_vport{};
    static constexpr f<0x04c, 4> port_num{};
    static constexpr f<0x050, 16> vport_number{};
    using fields = field_list<opcode, uid, op_mod, other_vport, port_num, vport_number>;
};
static_assert(well_formed<query_hca_vport_context_in>);

enum class vport_state : std::uint8_t {
    down   = 1,
    init   = 2,
    armed  = 3,
    active = 4,
};

template <>
struct value_names<vport_state>
    : one_of<vport_state::down, vport_state::init, vport_state::armed, vport_state::active> {
};

struct hca_vport_context : structure<hca_vport_context, 512> {
    static constexpr f<0x000, 32> field_select{};
    static constexpr f<0x100, 1> sm_virt_aware{};
    static constexpr f<0x101, 1> has_smi{};
    static constexpr f<0x102, 1> has_raw{};
    static constexpr f<0x103, 1> grh_required{};
    static constexpr f<0x105, 3> min_wqe_inline_mode{};
    static constexpr f<0x110, 4> port_physical_state{};
    static constexpr f<0x114, 4> vport_state_policy{};
    static constexpr f<0x118, 4> port_state{};
    static constexpr f<0x11c, 4, prm::vport_state> vport_state{};
    static constexpr f<0x140, 64> system_image_guid{};
    static constexpr f<0x180, 64> port_guid{};
    static constexpr f<0x1c0, 64> node_guid{};
    static constexpr f<0x200, 32> cap_mask1{};
    static constexpr f<0x220, 32> cap_mask1_field_select{};
    static constexpr f<0x240, 32> cap_mask2{};
    static constexpr f<0x260, 32> cap_mask2_field_select{};
    static constexpr f<0x290, 16> ooo_sl_mask{};
    static constexpr f<0x300, 16> lid{};
    static constexpr f<0x314, 4> init_type_reply{};
    static constexpr f<0x318, 3> lmc{};
    static constexpr f<0x31b, 5> subnet_timeout{};
    static constexpr f<0x320, 16> sm_lid{};
    static constexpr f<0x330, 4> sm_sl{};
    static constexpr f<0x340, 16> qkey_violation_counter{};
    static constexpr f<0x350, 16> pkey_violation_counter{};
    using fields =
        field_list<field_select, sm_virt_aware, has_smi, has_raw, grh_required, min_wqe_inline_mode,
                   port_physical_state, vport_state_policy, port_state, vport_state, system_image_guid, port_guid,
                   node_guid, cap_mask1, cap_mask1_field_select, cap_mask2, cap_mask2_field_select, ooo_sl_mask, lid,
                   init_type_reply, lmc, subnet_timeout, sm_lid, sm_sl, qkey_violation_counter, pkey_violation_counter>;
};
static_assert(well_formed<hca_vport_context>);

struct query_hca_vport_context_out : command_output<query_hca_vport_context_out, 528> {
    static constexpr part<0x080, hca_vport_context> context{};
    using fields = field_list<status, syndrome, context>;
};
static_assert(well_formed<query_hca_vport_context_out>);

struct query_hca_vport_gid_in : command_input<query_hca_vport_gid_in, 16> {
    static constexpr f<0x040, 1> other_vport{};
    static constexpr f<0x04c, 4> port_num{};
    static constexpr f<0x050, 16> vport_number{};
    static constexpr f<0x070, 16> gid_index{};
    using fields = field_list<opcode, uid, op_mod, other_vport, port_num, vport_number, gid_index>;
};
static_assert(well_formed<query_hca_vport_gid_in>);

struct gid : structure<gid, 16> {
    static constexpr f<0x000, 64> prefix{};
    static constexpr f<0x040, 64> guid{};
    using fields = field_list<prefix, guid>;
};
static_assert(well_formed<gid>);

// Followed by the other entries; there are gids_num in all.
struct query_hca_vport_gid_out : command_output<query_hca_vport_gid_out, 32> {
    static constexpr f<0x060, 16> gids_num{};
    static constexpr part<0x080, gid> gid0{};
    using fields = field_list<status, syndrome, gids_num, gid0>;
};
static_assert(well_formed<query_hca_vport_gid_out>);

struct lag_context : structure<lag_context, 8> {
    static constexpr f<0x015, 3> port_select_mode{};
    static constexpr f<0x01d, 3> lag_state{};
    static constexpr f<0x034, 4> tx_remap_affinity_2{};
    static constexpr f<0x03c, 4> tx_remap_affinity_1{};
    using fields = field_list<port_select_mode, lag_state, tx_remap_affinity_2, tx_remap_affinity_1>;
};
static_assert(well_formed<lag_context>);

struct query_lag_out : command_output<query_lag_out, 16> {
    static constexpr part<0x040, lag_context> context{};
    using fields = field_list<status, syndrome, context>;
};
static_assert(well_formed<query_lag_out>);

struct mad_ifc_in : command_input<mad_ifc_in, 272> {
    static constexpr f<0x040, 16> remote_lid{};
    static constexpr f<0x058, 8> port{};
    static constexpr bytes<0x080, 256> mad{};
    using fields = field_list<opcode, uid, op_mod, remote_lid, port, mad>;
};
static_assert(well_formed<mad_ifc_in>);

struct mad_ifc_out : command_output<mad_ifc_out, 272> {
    static constexpr bytes<0x080, 256> mad{};
    using fields = field_list<status, syndrome, mad>;
};
static_assert(well_formed<mad_ifc_out>);

enum class register_id : std::uint16_t {
    port_state      = 0x5006, // paos
    host_endianness = 0x7004,
};

template <>
struct value_names<register_id> : one_of<register_id::port_state, register_id::host_endianness> {
};

// Followed by the register; op_mod 0 writes it, 1 reads it.
struct access_register_in : command_input<access_register_in, 16> {
    static constexpr f<0x050, 16, prm::register_id> register_id{};
    static constexpr f<0x060, 32> argument{};
    using fields = field_list<opcode, uid, op_mod, register_id, argument>;
};
static_assert(well_formed<access_register_in>);

struct paos_register : structure<paos_register, 16> {
    static constexpr f<0x000, 8> swid{};
    static constexpr f<0x008, 8> local_port{};
    static constexpr f<0x014, 4> admin_status{};
    static constexpr f<0x01c, 4> oper_status{};
    static constexpr f<0x020, 1> ase{};
    static constexpr f<0x021, 1> ee{};
    static constexpr f<0x037, 1> fd{};
    static constexpr f<0x03e, 2> e{};
    using fields = field_list<swid, local_port, admin_status, oper_status, ase, ee, fd, e>;
};
static_assert(well_formed<paos_register>);

} // namespace ucxl::prm
