// Shared receive queues as the device knows them: the work queue context, receive memory pools, tag-matching queues.
#pragma once

#include "command.h"
#include "qpc.h"

namespace ucxl::prm
{

enum class wq_type : std::uint8_t {
    linked_list          = 0, // each entry starts with wqe_srq_next_segment
    cyclic               = 1,
    linked_list_striding = 2,
    cyclic_striding      = 3,
};

template <>
struct value_names<wq_type>
    : one_of<wq_type::linked_list, wq_type::cyclic, wq_type::linked_list_striding, wq_type::cyclic_striding> {
};

struct wq : structure<wq, 192> {
    static constexpr f<0x000, 4, prm::wq_type> wq_type{};
    static constexpr f<0x004, 1> wq_signature{};
    static constexpr f<0x005, 2> end_padding_mode{};
    static constexpr f<0x007, 1> cd_slave{};
    static constexpr f<0x020, 1> hds_skip_first_sge{};
    static constexpr f<0x021, 3> log2_hds_buf_size{};
    static constexpr f<0x02b, 5> page_offset{};
    static constexpr f<0x030, 16> lwm{};
    static constexpr f<0x048, 24> pd{};
    static constexpr f<0x068, 24> uar_page{};
    static constexpr f<0x080, 64> dbr_addr{};
    static constexpr f<0x0c0, 32> hw_counter{};
    static constexpr f<0x0e0, 32> sw_counter{};
    static constexpr f<0x10c, 4> log_wq_stride{};
    static constexpr f<0x113, 5> log_wq_pg_sz{};
    static constexpr f<0x11b, 5> log_wq_sz{};
    static constexpr f<0x120, 1> dbr_umem_valid{};
    static constexpr f<0x121, 1> wq_umem_valid{};
    static constexpr f<0x123, 5> log_hairpin_num_packets{};
    static constexpr f<0x12b, 5> log_hairpin_data_sz{};
    static constexpr f<0x134, 4> log_wqe_num_of_strides{};
    static constexpr f<0x138, 1> two_byte_shift_en{};
    static constexpr f<0x13d, 3> log_wqe_stride_size{};
    static constexpr f<0x140, 32> dbr_umem_id{};
    static constexpr f<0x160, 32> wq_umem_id{};
    using fields =
        field_list<wq_type, wq_signature, end_padding_mode, cd_slave, hds_skip_first_sge, log2_hds_buf_size,
                   page_offset, lwm, pd, uar_page, dbr_addr, hw_counter, sw_counter, log_wq_stride, log_wq_pg_sz,
                   log_wq_sz, dbr_umem_valid, wq_umem_valid, log_hairpin_num_packets, log_hairpin_data_sz,
                   log_wqe_num_of_strides, two_byte_shift_en, log_wqe_stride_size, dbr_umem_id, wq_umem_id>;
};
static_assert(well_formed<wq>);

enum class rmp_state : std::uint8_t {
    ready = 1,
    error = 3,
};

template <>
struct value_names<rmp_state> : one_of<rmp_state::ready, rmp_state::error> {
};

struct rmpc : structure<rmpc, 240> {
    static constexpr f<0x008, 4, rmp_state> state{};
    static constexpr f<0x020, 1> basic_cyclic_rcv_wqe{};
    static constexpr part<0x180, prm::wq> wq{};
    using fields = field_list<state, basic_cyclic_rcv_wqe, wq>;
};
static_assert(well_formed<rmpc>);

struct create_rmp_in : command_input<create_rmp_in, 272> {
    static constexpr part<0x100, rmpc> rmp_context{};
    using fields = field_list<opcode, uid, op_mod, rmp_context>;
};
static_assert(well_formed<create_rmp_in>);

struct create_rmp_out : command_output<create_rmp_out, 16> {
    static constexpr f<0x048, 24> rmpn{};
    using fields = field_list<status, syndrome, rmpn>;
};
static_assert(well_formed<create_rmp_out>);

// modify_bitmask 1: the low water mark of the context is set.
struct modify_rmp_in : command_input<modify_rmp_in, 272> {
    static constexpr f<0x040, 4, prm::rmp_state> rmp_state{};
    static constexpr f<0x048, 24> rmpn{};
    static constexpr f<0x080, 64> modify_bitmask{};
    static constexpr part<0x100, rmpc> rmp_context{};
    using fields = field_list<opcode, uid, op_mod, rmp_state, rmpn, modify_bitmask, rmp_context>;
};
static_assert(well_formed<modify_rmp_in>);

// Query and destroy.
struct plain_rmp_in : command_input<plain_rmp_in, 16> {
    static constexpr f<0x048, 24> rmpn{};
    using fields = field_list<opcode, uid, op_mod, rmpn>;
};
static_assert(well_formed<plain_rmp_in>);

struct query_rmp_out : command_output<query_rmp_out, 272> {
    static constexpr part<0x100, rmpc> rmp_context{};
    using fields = field_list<status, syndrome, rmp_context>;
};
static_assert(well_formed<query_rmp_out>);

struct tag_matching_topology : structure<tag_matching_topology, 16> {
    static constexpr f<0x000, 4> log_matching_list_sz{};
    static constexpr f<0x010, 16> append_next_index{};
    static constexpr f<0x020, 16> sw_phase_cnt{};
    static constexpr f<0x030, 16> hw_phase_cnt{};
    using fields = field_list<log_matching_list_sz, append_next_index, sw_phase_cnt, hw_phase_cnt>;
};
static_assert(well_formed<tag_matching_topology>);

struct xrqc : structure<xrqc, 320> {
    static constexpr f<0x000, 4> state{};
    static constexpr f<0x004, 1> rlkey{};
    static constexpr f<0x014, 4> topology{};
    static constexpr f<0x01c, 4> offload{};
    static constexpr f<0x028, 24> user_index{};
    static constexpr f<0x048, 24> cqn{};
    static constexpr f<0x07f, 1> dc{};
    static constexpr part<0x100, tag_matching_topology> tag_matching{};
    static constexpr part<0x400, prm::wq> wq{};
    using fields = field_list<state, rlkey, topology, offload, user_index, cqn, dc, tag_matching, wq>;
};
static_assert(well_formed<xrqc>);

struct create_xrq_in : command_input<create_xrq_in, 336> {
    static constexpr part<0x080, xrqc> xrq_context{};
    using fields = field_list<opcode, uid, op_mod, xrq_context>;
};
static_assert(well_formed<create_xrq_in>);

struct create_xrq_out : command_output<create_xrq_out, 16> {
    static constexpr f<0x048, 24> xrqn{};
    using fields = field_list<status, syndrome, xrqn>;
};
static_assert(well_formed<create_xrq_out>);

struct destroy_xrq_in : command_input<destroy_xrq_in, 16> {
    static constexpr f<0x048, 24> xrqn{};
    using fields = field_list<opcode, uid, op_mod, xrqn>;
};
static_assert(well_formed<destroy_xrq_in>);

struct set_xrq_dc_params_entry_in : command_input<set_xrq_dc_params_entry_in, 48> {
    static constexpr f<0x048, 24> xrqn{};
    static constexpr f<0x083, 5> ack_timeout{};
    static constexpr f<0x08c, 1> dp_ordering{};
    static constexpr f<0x08d, 3, path_mtu> mtu{};
    static constexpr f<0x090, 16> pkey_table_index{};
    static constexpr f<0x0ac, 4> cnak_reverse_sl{};
    static constexpr f<0x0b4, 4> reverse_sl{};
    static constexpr f<0x0bc, 4> sl{};
    static constexpr f<0x0c0, 64> dc_access_key{};
    using fields = field_list<opcode, uid, op_mod, xrqn, ack_timeout, dp_ordering, mtu, pkey_table_index,
                              cnak_reverse_sl, reverse_sl, sl, dc_access_key>;
};
static_assert(well_formed<set_xrq_dc_params_entry_in>);

} // namespace ucxl::prm
