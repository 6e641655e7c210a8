// The context of a queue pair, and the address path inside it.
#pragma once

#include "command.h"

namespace ucxl::prm
{

enum class qp_state : std::uint8_t {
    reset         = 0,
    init          = 1,
    rtr           = 2,
    rts           = 3,
    send_error    = 4,
    send_drain    = 5,
    error         = 6,
    send_draining = 7,
    suspended     = 9,
};

template <>
struct value_names<qp_state>
    : one_of<qp_state::reset, qp_state::init, qp_state::rtr, qp_state::rts, qp_state::send_error, qp_state::send_drain,
             qp_state::error, qp_state::send_draining, qp_state::suspended> {
};

enum class qp_service : std::uint8_t {
    rc           = 0x0,
    uc           = 0x1,
    ud           = 0x2,
    xrc          = 0x3,
    ib_l2        = 0x4,
    dci          = 0x5,
    qp0          = 0x7,
    qp1          = 0x8,
    raw_datagram = 0x9,
    reg_umr      = 0xc,
    dc_cnak      = 0x10,
};

template <>
struct value_names<qp_service>
    : one_of<qp_service::rc, qp_service::uc, qp_service::ud, qp_service::xrc, qp_service::ib_l2, qp_service::dci,
             qp_service::qp0, qp_service::qp1, qp_service::raw_datagram, qp_service::reg_umr, qp_service::dc_cnak> {
};

enum class path_migration : std::uint8_t {
    armed    = 0,
    rearm    = 1,
    reserved = 2,
    migrated = 3,
};

template <>
struct value_names<path_migration>
    : one_of<path_migration::armed, path_migration::rearm, path_migration::reserved, path_migration::migrated> {
};

enum class path_mtu : std::uint8_t {
    bytes_256    = 1,
    bytes_512    = 2,
    bytes_1024   = 3,
    bytes_2048   = 4,
    bytes_4096   = 5,
    raw_ethernet = 7,
};

template <>
struct value_names<path_mtu> : one_of<path_mtu::bytes_256, path_mtu::bytes_512, path_mtu::bytes_1024,
                                      path_mtu::bytes_2048, path_mtu::bytes_4096, path_mtu::raw_ethernet> {
};

enum class receive_queue_type : std::uint8_t {
    regular        = 0,
    shared_rmp_xrq = 1, // srqn_rmpn_xrqn is its number
    zero_size      = 3,
};

template <>
struct value_names<receive_queue_type>
    : one_of<receive_queue_type::regular, receive_queue_type::shared_rmp_xrq, receive_queue_type::zero_size> {
};

enum class atomic_mode : std::uint8_t {
    none       = 0,
    ib_spec    = 1,
    only_8b    = 2,
    up_to_8b   = 3,
    up_to_16b  = 4,
    up_to_32b  = 5,
    up_to_64b  = 6,
    up_to_128b = 7,
    up_to_256b = 8,
};

template <>
struct value_names<atomic_mode> : one_of<atomic_mode::none, atomic_mode::ib_spec, atomic_mode::only_8b,
                                         atomic_mode::up_to_8b, atomic_mode::up_to_16b, atomic_mode::up_to_32b,
                                         atomic_mode::up_to_64b, atomic_mode::up_to_128b, atomic_mode::up_to_256b> {
};

// When received or read data may be written to the CQE.
enum class scatter_to_cqe : std::uint8_t {
    none              = 0x00,
    up_to_32b         = 0x01,
    up_to_64b         = 0x02,
    request_up_to_32b = 0x11,
    request_up_to_64b = 0x22,
};

template <>
struct value_names<scatter_to_cqe> : one_of<scatter_to_cqe::none, scatter_to_cqe::up_to_32b, scatter_to_cqe::up_to_64b,
                                            scatter_to_cqe::request_up_to_32b, scatter_to_cqe::request_up_to_64b> {
};

// opt_param_mask of the transitions: the optional fields of the context that the command carries.
enum class qp_optional : std::uint32_t {
    alternate_path       = 1U << 0,
    remote_read_enable   = 1U << 1,
    remote_atomic_enable = 1U << 2,
    remote_write_enable  = 1U << 3,
    pkey_index           = 1U << 4,
    q_key                = 1U << 5,
    rnr_timeout          = 1U << 6,
    primary_path         = 1U << 7,
    sra_max              = 1U << 8,
    rra_max              = 1U << 9,
    pm_state             = 1U << 10,
    retry_count          = 1U << 12,
    rnr_retry            = 1U << 13,
    ack_timeout          = 1U << 14,
    lag_tx_port_affinity = 1U << 15,
    primary_port         = 1U << 16,
    srq                  = 1U << 18,
    cqn_rcv              = 1U << 19,
    dc_half_handshake    = 1U << 20,
    dc_key               = 1U << 21,
    pacing_index         = 1U << 22,
    counter_set_id       = 1U << 25,
};

template <>
struct value_names<qp_optional>
    : any_of<qp_optional::alternate_path, qp_optional::remote_read_enable, qp_optional::remote_atomic_enable,
             qp_optional::remote_write_enable, qp_optional::pkey_index, qp_optional::q_key, qp_optional::rnr_timeout,
             qp_optional::primary_path, qp_optional::sra_max, qp_optional::rra_max, qp_optional::pm_state,
             qp_optional::retry_count, qp_optional::rnr_retry, qp_optional::ack_timeout,
             qp_optional::lag_tx_port_affinity, qp_optional::primary_port, qp_optional::srq, qp_optional::cqn_rcv,
             qp_optional::dc_half_handshake, qp_optional::dc_key, qp_optional::pacing_index,
             qp_optional::counter_set_id> {
};

// opt_param_mask_95_32 of rts2rts: the fields of the extension that the command carries.
inline constexpr std::uint64_t optional_dci_stream_channel = 1U << 0;

struct ads : structure<ads, 44> {
    static constexpr f<0x000, 1> fl{};
    static constexpr f<0x001, 1> free_ar{};
    static constexpr f<0x010, 16> pkey_index{};
    static constexpr f<0x028, 1> grh{};
    static constexpr f<0x029, 7> mlid{};
    static constexpr f<0x030, 16> rlid{};
    static constexpr f<0x040, 5> ack_timeout{};
    static constexpr f<0x048, 8> src_addr_index{};
    static constexpr f<0x050, 4> log_rtm{};
    static constexpr f<0x054, 4> stat_rate{};
    static constexpr f<0x058, 8> hop_limit{};
    static constexpr f<0x064, 8> tclass{};
    static constexpr f<0x06c, 20> flow_label{};
    static constexpr bytes<0x080, 16> rgid_rip{};
    static constexpr f<0x104, 1> f_dscp{};
    static constexpr f<0x105, 1> f_ecn{};
    static constexpr f<0x107, 1> f_eth_prio{};
    static constexpr f<0x108, 2> ecn{};
    static constexpr f<0x10a, 6> dscp{};
    static constexpr f<0x110, 16> udp_sport{};
    static constexpr f<0x120, 1> dei_cfi{};
    static constexpr f<0x121, 3> eth_prio{};
    static constexpr f<0x124, 4> sl{};
    static constexpr f<0x128, 8> vhca_port_num{};
    static constexpr f<0x130, 48> rmac{};
    using fields = field_list<fl, free_ar, pkey_index, grh, mlid, rlid, ack_timeout, src_addr_index, log_rtm, stat_rate,
                              hop_limit, tclass, flow_label, rgid_rip, f_dscp, f_ecn, f_eth_prio, ecn, dscp, udp_sport,
                              dei_cfi, eth_prio, sl, vhca_port_num, rmac>;
};
static_assert(well_formed<ads>);

struct qpc : structure<qpc, 232> {
    static constexpr f<0x000, 4, qp_state> state{};
    static constexpr f<0x004, 4> lag_tx_port_affinity{};
    static constexpr f<0x008, 8, qp_service> st{};
    static constexpr f<0x012, 1> isolate_vl_tc{};
    static constexpr f<0x013, 2, path_migration> pm_state{};
    static constexpr f<0x015, 1> rdma_wr_disabled{};
    static constexpr f<0x016, 2> req_e2e_credit_mode{};
    static constexpr f<0x018, 4> offload_type{};
    static constexpr f<0x01c, 2> end_padding_mode{};
    static constexpr f<0x020, 1> wq_signature{};
    static constexpr f<0x021, 1> block_lb_mc{};
    static constexpr f<0x022, 1> atomic_like_write_en{};
    static constexpr f<0x023, 1> latency_sensitive{};
    static constexpr f<0x024, 1> dual_write{};
    static constexpr f<0x025, 1> drain_sigerr{};
    static constexpr f<0x026, 1> dp_ordering_0{};
    static constexpr f<0x027, 1> dp_ordering_force{};
    static constexpr f<0x028, 24> pd{};
    static constexpr f<0x040, 3, path_mtu> mtu{};
    static constexpr f<0x043, 5> log_msg_max{};
    static constexpr f<0x049, 4> log_rq_size{};
    static constexpr f<0x04d, 3> log_rq_stride{};
    static constexpr f<0x050, 1> no_sq{};
    static constexpr f<0x051, 4> log_sq_size{};
    static constexpr f<0x056, 2> retry_mode{};
    static constexpr f<0x058, 2> ts_format{};
    static constexpr f<0x05a, 1> data_in_order{};
    static constexpr f<0x05b, 1> rlkey{};
    static constexpr f<0x05c, 4> ulp_stateless_offload_mode{};
    static constexpr f<0x060, 8> counter_set_id{};
    static constexpr f<0x068, 24> uar_page{};
    static constexpr f<0x080, 2> send_dbr_mode{};
    static constexpr f<0x083, 1> full_handshake{};
    static constexpr f<0x084, 4> cnak_reverse_sl{};
    static constexpr f<0x088, 24> user_index{};
    static constexpr f<0x0a3, 5> log_page_size{};
    static constexpr f<0x0a8, 24> remote_qpn{};
    static constexpr part<0x0c0, ads> primary_address_path{};
    static constexpr part<0x220, ads> secondary_address_path{};
    static constexpr f<0x380, 4> log_ack_req_freq{};
    static constexpr f<0x388, 3> log_sra_max{};
    static constexpr f<0x38b, 1> extended_rnr_retry_valid{};
    static constexpr f<0x38d, 3> retry_count{};
    static constexpr f<0x390, 3> rnr_retry{};
    static constexpr f<0x393, 1> extended_retry_count_valid{};
    static constexpr f<0x394, 1> fre{};
    static constexpr f<0x395, 3> cur_rnr_retry{};
    static constexpr f<0x398, 3> cur_retry_count{};
    static constexpr f<0x39b, 5> extended_log_rnr_retry{};
    static constexpr f<0x3a0, 16> extended_cur_rnr_retry{};
    static constexpr f<0x3b0, 16> packet_pacing_rate_limit_index{};
    static constexpr f<0x3c8, 24> next_send_psn{};
    static constexpr f<0x3e4, 4> log_num_dci_stream_channels{};
    static constexpr f<0x3e8, 24> cqn_snd{};
    static constexpr f<0x404, 4> log_num_dci_errored_streams{};
    static constexpr f<0x408, 24> deth_sqpn{};
    static constexpr f<0x428, 8> extended_retry_count{};
    static constexpr f<0x438, 8> extended_cur_retry_count{};
    static constexpr f<0x448, 24> last_acked_psn{};
    static constexpr f<0x468, 24> ssn{};
    static constexpr f<0x488, 3> log_rra_max{};
    static constexpr f<0x48c, 4, prm::atomic_mode> atomic_mode{};
    static constexpr f<0x490, 1> rre{};
    static constexpr f<0x491, 1> rwe{};
    static constexpr f<0x492, 1> rae{};
    static constexpr f<0x494, 6> page_offset{};
    static constexpr f<0x49c, 1> dp_ordering_1{};
    static constexpr f<0x49d, 1> cd_slave_receive{};
    static constexpr f<0x49e, 1> cd_slave_send{};
    static constexpr f<0x49f, 1> cd_master{};
    static constexpr f<0x4a3, 5> min_rnr_nak{};
    static constexpr f<0x4a8, 24> next_rcv_psn{};
    static constexpr f<0x4c8, 24> xrcd{};
    static constexpr f<0x4e8, 24> cqn_rcv{};
    static constexpr f<0x500, 64> dbr_addr{};
    static constexpr f<0x540, 32> q_key{};
    static constexpr f<0x565, 3, receive_queue_type> rq_type{};
    static constexpr f<0x568, 24> srqn_rmpn_xrqn{};
    static constexpr f<0x588, 24> rmsn{};
    static constexpr f<0x5a0, 16> hw_sq_wqebb_counter{};
    static constexpr f<0x5b0, 16> sw_sq_wqebb_counter{};
    static constexpr f<0x5c0, 32> hw_rq_counter{};
    static constexpr f<0x5e0, 32> sw_rq_counter{};
    static constexpr f<0x608, 24> roce_adp_retrans_rtt{};
    static constexpr f<0x62f, 1> cgs{};
    static constexpr f<0x630, 8, scatter_to_cqe> cs_req{};
    static constexpr f<0x638, 8, scatter_to_cqe> cs_res{};
    static constexpr f<0x640, 64> dc_access_key{};
    static constexpr f<0x680, 1> rdma_active{};
    static constexpr f<0x681, 1> comm_est{};
    static constexpr f<0x682, 1> suspended{};
    static constexpr f<0x683, 1> dbr_umem_valid{};
    static constexpr f<0x688, 24> send_msg_psn{};
    static constexpr f<0x6a8, 24> rcv_msg_psn{};
    static constexpr f<0x6c0, 64> rdma_va{};
    static constexpr f<0x700, 32> rdma_key{};
    static constexpr f<0x720, 32> dbr_umem_id{};
    using fields = field_list<
        state, lag_tx_port_affinity, st, isolate_vl_tc, pm_state, rdma_wr_disabled, req_e2e_credit_mode, offload_type,
        end_padding_mode, wq_signature, block_lb_mc, atomic_like_write_en, latency_sensitive, dual_write, drain_sigerr,
        dp_ordering_0, dp_ordering_force, pd, mtu, log_msg_max, log_rq_size, log_rq_stride, no_sq, log_sq_size,
        retry_mode, ts_format, data_in_order, rlkey, ulp_stateless_offload_mode, counter_set_id, uar_page,
        send_dbr_mode, full_handshake, cnak_reverse_sl, user_index, log_page_size, remote_qpn, primary_address_path,
        secondary_address_path, log_ack_req_freq, log_sra_max, extended_rnr_retry_valid, retry_count, rnr_retry,
        extended_retry_count_valid, fre, cur_rnr_retry, cur_retry_count, extended_log_rnr_retry, extended_cur_rnr_retry,
        packet_pacing_rate_limit_index, next_send_psn, log_num_dci_stream_channels, cqn_snd,
        log_num_dci_errored_streams, deth_sqpn, extended_retry_count, extended_cur_retry_count, last_acked_psn, ssn,
        log_rra_max, atomic_mode, rre, rwe, rae, page_offset, dp_ordering_1, cd_slave_receive, cd_slave_send, cd_master,
        min_rnr_nak, next_rcv_psn, xrcd, cqn_rcv, dbr_addr, q_key, rq_type, srqn_rmpn_xrqn, rmsn, hw_sq_wqebb_counter,
        sw_sq_wqebb_counter, hw_rq_counter, sw_rq_counter, roce_adp_retrans_rtt, cgs, cs_req, cs_res, dc_access_key,
        rdma_active, comm_est, suspended, dbr_umem_valid, send_msg_psn, rcv_msg_psn, rdma_va, rdma_key, dbr_umem_id>;
};
static_assert(well_formed<qpc>);

// The extension of the context, when qpc_ext is set.
struct qpc_ext : structure<qpc_ext, 192> {
    static constexpr f<0x000, 1> delay_drop_en{};
    static constexpr f<0x001, 1> vl15{};
    static constexpr f<0x002, 1> mmo{};
    static constexpr f<0x010, 16> dci_stream_channel_id{};
    static constexpr f<0x020, 32> qos_queue_group_id_requester{};
    static constexpr f<0x040, 32> qos_queue_group_id_responder{};
    using fields = field_list<delay_drop_en, vl15, mmo, dci_stream_channel_id, qos_queue_group_id_requester,
                              qos_queue_group_id_responder>;
};
static_assert(well_formed<qpc_ext>);

} // namespace ucxl::prm
