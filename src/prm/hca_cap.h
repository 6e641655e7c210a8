// The general page of QUERY_HCA_CAP: what a device can do. The command and the other pages are in hca_cap_pages.h.
//
// Fields for steering, Ethernet offloads and flexible parsing are not declared: they are zero, which means "not
// supported".
#pragma once

#include "command.h"

namespace ucxl::prm
{

enum class port_type : std::uint8_t {
    infiniband = 0,
    ethernet   = 1,
};

template <>
struct value_names<port_type> : one_of<port_type::infiniband, port_type::ethernet> {
};

// umr_fence: the fence that a UMR needs towards what was posted before it.
enum class umr_fence_kind : std::uint8_t {
    strong = 0, // strong ordering
    small  = 1, // initiator small
    none   = 2,
};

template <>
struct value_names<umr_fence_kind> : one_of<umr_fence_kind::strong, umr_fence_kind::small, umr_fence_kind::none> {
};

struct hca_cap : structure<hca_cap, 256> {
    static constexpr f<0x01f, 1> vhca_resource_manager{};
    static constexpr f<0x020, 1> hca_cap_2{};
    static constexpr f<0x030, 16> vhca_id{};
    static constexpr f<0x062, 1> qp_data_in_order{};
    static constexpr f<0x06b, 5> log_dma_mmo_max_size{};
    static constexpr f<0x080, 8> log_max_srq_sz{};
    static constexpr f<0x088, 8> log_max_qp_sz{};
    static constexpr f<0x09b, 5> log_max_qp{};
    static constexpr f<0x0a3, 1> ece{};
    static constexpr f<0x0ab, 5> log_max_srq{};
    static constexpr f<0x0c8, 8> log_max_cq_sz{};
    static constexpr f<0x0db, 5> log_max_cq{};
    static constexpr f<0x0e0, 8> log_max_eq_sz{};
    static constexpr f<0x0e8, 1> relaxed_ordering_write{};
    static constexpr f<0x0ea, 6> log_max_mkey{};
    static constexpr f<0x0f0, 1> tunneled_atomic{};
    static constexpr f<0x0f1, 1> as_notify{};
    static constexpr f<0x0f2, 1> m_pci_port{};
    static constexpr f<0x0f3, 1> m_vhca_mk{};
    static constexpr f<0x0f4, 1> cmd_on_behalf{};
    static constexpr f<0x0f5, 1> device_emulation_manager{};
    static constexpr f<0x0f6, 1> terminate_scatter_list_mkey{};
    static constexpr f<0x0f7, 1> repeated_mkey{};
    static constexpr f<0x0f8, 1> dump_fill_mkey{};
    static constexpr f<0x0fc, 4> log_max_eq{};
    static constexpr f<0x100, 8> max_indirection{};
    static constexpr f<0x108, 1> fixed_buffer_size{};
    static constexpr f<0x109, 7> log_max_mrw_sz{};
    static constexpr f<0x112, 6> log_max_bsf_list_size{};
    static constexpr f<0x118, 1> umr_extended_translation_offset{};
    static constexpr f<0x119, 1> null_mkey{};
    static constexpr f<0x11a, 6> log_max_klm_list_size{};
    static constexpr f<0x122, 1> qpc_extension{};
    static constexpr f<0x12a, 6> log_max_ra_req_dc{};
    static constexpr f<0x138, 1> ooo_sl_mask{};
    static constexpr f<0x13a, 6> log_max_ra_res_dc{};
    static constexpr f<0x147, 1> sig_crc64_xp10{};
    static constexpr f<0x148, 1> sig_crc32c{};
    static constexpr f<0x14a, 6> log_max_ra_req_qp{};
    static constexpr f<0x151, 1> rts2rts_qp_udp_sport{};
    static constexpr f<0x152, 1> rts2rts_lag_tx_port_affinity{};
    static constexpr f<0x153, 1> dma_mmo_sq{};
    static constexpr f<0x15a, 6> log_max_ra_res_qp{};
    static constexpr f<0x160, 1> end_pad{};
    static constexpr f<0x161, 1> cc_query_allowed{};
    static constexpr f<0x162, 1> cc_modify_allowed{};
    static constexpr f<0x163, 1> start_pad{};
    static constexpr f<0x164, 1> cache_line_128byte{};
    static constexpr f<0x165, 1> gid_table_size_ro{};
    static constexpr f<0x166, 1> pkey_table_size_ro{};
    static constexpr f<0x168, 1> rnr_nak_q_counters{};
    static constexpr f<0x169, 1> rts2rts_qp_counters_set_id{};
    static constexpr f<0x16a, 1> rts2rts_qp_dscp{};
    static constexpr f<0x170, 16> gid_table_size{};
    static constexpr f<0x180, 1> out_of_seq_cnt{};
    static constexpr f<0x181, 1> vport_counters{};
    static constexpr f<0x182, 1> retransmission_q_counters{};
    static constexpr f<0x183, 1> debug{};
    static constexpr f<0x184, 1> modify_rq_counter_set_id{};
    static constexpr f<0x185, 1> rq_delay_drop{};
    static constexpr f<0x186, 10> max_qp_cnt{};
    static constexpr f<0x190, 16> pkey_table_size{};
    static constexpr f<0x1a0, 1> vport_group_manager{};
    static constexpr f<0x1a1, 1> vhca_group_manager{};
    static constexpr f<0x1a2, 1> ib_virt{};
    static constexpr f<0x1a8, 1> device_memory{};
    static constexpr f<0x1ab, 5> local_ca_ack_delay{};
    static constexpr f<0x1b1, 1> enhanced_retransmission_q_counters{};
    static constexpr f<0x1b6, 2, prm::port_type> port_type{};
    static constexpr f<0x1b8, 8> num_ports{};
    static constexpr f<0x1c3, 5> log_max_msg{};
    static constexpr f<0x1c8, 1> dp_ordering_ooo_rw_xrc{};
    static constexpr f<0x1c9, 1> dp_ordering_ooo_rw_dc{};
    static constexpr f<0x1ca, 1> dp_ordering_ooo_rw_rc{};
    static constexpr f<0x1d2, 1> general_notification_event{};
    static constexpr f<0x1d8, 1> ib_port_sniffer{};
    static constexpr f<0x1e0, 16> stat_rate_support{};
    static constexpr f<0x1f0, 1> sig_block_4048{};
    static constexpr f<0x1f8, 1> init2_lag_tx_port_affinity{};
    static constexpr f<0x1fc, 4> cqe_version{};
    static constexpr f<0x200, 1> compact_address_vector{};
    static constexpr f<0x205, 1> ib_striding_wq{};
    static constexpr f<0x206, 1> repeated_block_disabled{};
    static constexpr f<0x207, 1> umr_modify_entity_size_disabled{};
    static constexpr f<0x208, 1> umr_modify_atomic_disabled{};
    static constexpr f<0x209, 1> umr_indirect_mkey_disabled{};
    static constexpr f<0x20a, 2, umr_fence_kind> umr_fence{};
    static constexpr f<0x20c, 1> dc_req_sctr_data_cqe{};
    static constexpr f<0x20d, 1> dc_connect_qp{};
    static constexpr f<0x20e, 1> dc_cnak_trace{};
    static constexpr f<0x20f, 1> drain_sigerr{};
    static constexpr f<0x210, 2> cmdif_checksum{};
    static constexpr f<0x212, 1> sigerr_cqe{};
    static constexpr f<0x214, 1> wq_signature{};
    static constexpr f<0x215, 1> sctr_data_cqe{};
    static constexpr f<0x21a, 1> dct{};
    static constexpr f<0x21b, 1> qos{};
    static constexpr f<0x21d, 1> roce{};
    static constexpr f<0x21e, 1> atomic{};
    static constexpr f<0x21f, 1> extended_retry_count{};
    static constexpr f<0x220, 1> cq_oi{};
    static constexpr f<0x221, 1> cq_resize{};
    static constexpr f<0x222, 1> cq_moderation{};
    static constexpr f<0x223, 1> cq_period_mode_modify{};
    static constexpr f<0x224, 1> cq_invalidate{};
    static constexpr f<0x225, 1> ib_striding_wq_cq_first_indication{};
    static constexpr f<0x226, 1> cq_eq_remap{};
    static constexpr f<0x227, 1> pg{};
    static constexpr f<0x228, 1> block_lb_mc{};
    static constexpr f<0x229, 1> exponential_backoff{};
    static constexpr f<0x22a, 1> scqe_break_moderation{};
    static constexpr f<0x22b, 1> cq_period_start_from_cqe{};
    static constexpr f<0x22c, 1> cd{};
    static constexpr f<0x22d, 1> atm{};
    static constexpr f<0x22e, 1> apm{};
    static constexpr f<0x22f, 1> vector_calc{};
    static constexpr f<0x230, 1> umr_ptr_rlkey{};
    static constexpr f<0x231, 1> imaicl{};
    static constexpr f<0x232, 1> qp_packet_based{};
    static constexpr f<0x235, 1> initiator_src_dct_in_cqe{};
    static constexpr f<0x236, 1> qkv{};
    static constexpr f<0x237, 1> pkv{};
    static constexpr f<0x238, 1> set_deth_sqpn{};
    static constexpr f<0x239, 1> rts2rts_primary_sl{};
    static constexpr f<0x23a, 1> initiator_src_dct{};
    static constexpr f<0x23b, 1> dc_v2{};
    static constexpr f<0x23c, 1> xrc{};
    static constexpr f<0x23d, 1> ud{};
    static constexpr f<0x23e, 1> uc{};
    static constexpr f<0x23f, 1> rc{};
    static constexpr f<0x240, 1> uar_4k{};
    static constexpr f<0x241, 1> dci_no_rdma_wr_optimized_performance{};
    static constexpr f<0x248, 1> fl_rc_qp_when_roce_disabled{};
    static constexpr f<0x24a, 6> uar_sz{};
    static constexpr f<0x252, 1> umem_uid_0{};
    static constexpr f<0x253, 5> log_max_dc_cnak_qps{};
    static constexpr f<0x258, 8> log_pg_sz{};
    static constexpr f<0x260, 1> bf{};
    static constexpr f<0x264, 1> max_qp_retry_freq{};
    static constexpr f<0x265, 1> qp_by_name{};
    static constexpr f<0x266, 1> mkey_by_name{};
    static constexpr f<0x268, 1> suspend_qp_uc{};
    static constexpr f<0x269, 1> suspend_qp_ud{};
    static constexpr f<0x26a, 1> suspend_qp_rc{};
    static constexpr f<0x26b, 5> log_bf_reg_size{};
    static constexpr f<0x275, 1> atomic_rate_pa{};
    static constexpr f<0x276, 2> lag_dct{};
    static constexpr f<0x278, 1> lag_tx_port_affinity{};
    static constexpr f<0x27b, 1> lag_master{};
    static constexpr f<0x27c, 4> num_lag_ports{};
    static constexpr f<0x280, 16> num_of_diagnostic_counters{};
    static constexpr f<0x290, 16> max_wqe_sz_sq{};
    static constexpr f<0x2b0, 16> max_wqe_sz_rq{};
    static constexpr f<0x2d0, 16> max_wqe_sz_sq_dc{};
    static constexpr f<0x2e7, 25> max_qp_mcg{};
    static constexpr f<0x318, 8> log_max_mcg{};
    static constexpr f<0x323, 5> log_max_transport_domain{};
    static constexpr f<0x32b, 5> log_max_pd{};
    static constexpr f<0x330, 1> dp_ordering_ooo_all_ud{};
    static constexpr f<0x331, 1> dp_ordering_ooo_all_uc{};
    static constexpr f<0x332, 1> dp_ordering_ooo_all_xrc{};
    static constexpr f<0x333, 1> dp_ordering_ooo_all_dc{};
    static constexpr f<0x334, 1> dp_ordering_ooo_all_rc{};
    static constexpr f<0x33b, 5> log_max_xrcd{};
    static constexpr f<0x343, 1> eq_overrun_count{};
    static constexpr f<0x345, 1> invalid_command_count{};
    static constexpr f<0x346, 1> quota_exceeded_count{};
    static constexpr f<0x363, 5> log_max_rq{};
    static constexpr f<0x36b, 5> log_max_sq{};
    static constexpr f<0x380, 1> basic_cyclic_rcv_wqe{};
    static constexpr f<0x383, 5> log_max_rmp{};
    static constexpr f<0x3a0, 1> ext_stride_num_range{};
    static constexpr f<0x3a8, 1> mkc_order_read_after_write{};
    static constexpr f<0x3a9, 1> mkc_order_write_after_write_ro_only{};
    static constexpr f<0x3db, 5> log_max_wq_sz{};
    static constexpr f<0x400, 64> general_obj_types{};
    static constexpr f<0x440, 2> sq_ts_format{};
    static constexpr f<0x442, 2> rq_ts_format{};
    static constexpr f<0x448, 24> create_qp_start_hint{};
    static constexpr f<0x469, 1> crypto{};
    static constexpr f<0x470, 16> max_num_eqs{};
    static constexpr f<0x480, 1> sigerr_domain_and_sig_type{};
    static constexpr f<0x490, 16> log_uar_page_sz{};
    static constexpr f<0x4c0, 32> device_frequency_mhz{};
    static constexpr f<0x4e0, 32> device_frequency_khz{};
    static constexpr f<0x51b, 5> log_max_pasid{};
    static constexpr f<0x520, 32> num_of_uars_per_page{};
    static constexpr f<0x573, 5> log_max_guaranteed_connections{};
    static constexpr f<0x57b, 5> log_max_dct_connections{};
    static constexpr f<0x580, 8> log_max_atomic_size_qp{};
    static constexpr f<0x58b, 5> log_max_dci_stream_channels{};
    static constexpr f<0x593, 5> log_max_dci_errored_streams{};
    static constexpr f<0x598, 8> log_max_atomic_size_dc{};
    static constexpr f<0x5b0, 1> enhanced_cqe_compression{};
    static constexpr f<0x5b2, 1> crossing_vhca_mkey{};
    static constexpr f<0x5bc, 1> mini_cqe_resp_stride_index{};
    static constexpr f<0x5bd, 1> cqe_128_always{};
    static constexpr f<0x5be, 1> cqe_compression_128b{};
    static constexpr f<0x5bf, 1> cqe_compression{};
    static constexpr f<0x5c0, 16> cqe_compression_timeout{};
    static constexpr f<0x5d0, 16> cqe_compression_max_num{};
    static constexpr f<0x5ec, 4> log_max_tm_offloaded_op_size{};
    static constexpr f<0x5f0, 1> tag_matching{};
    static constexpr f<0x5f1, 1> rndv_offload_rc{};
    static constexpr f<0x5f2, 1> rndv_offload_dc{};
    static constexpr f<0x5f3, 5> log_tag_matching_list_sz{};
    static constexpr f<0x5fb, 5> log_max_xrq{};
    static constexpr f<0x600, 8> affiliate_nic_vport_criteria{};
    static constexpr f<0x608, 8> native_port_num{};
    static constexpr f<0x610, 8> num_vhca_ports{};
    static constexpr f<0x680, 1> sf{};
    static constexpr f<0x748, 1> dma_mmo_qp{};
    using fields = field_list<
        vhca_resource_manager, hca_cap_2, vhca_id, qp_data_in_order, log_dma_mmo_max_size, log_max_srq_sz,
        log_max_qp_sz, log_max_qp, ece, log_max_srq, log_max_cq_sz, log_max_cq, log_max_eq_sz, relaxed_ordering_write,
        log_max_mkey, tunneled_atomic, as_notify, m_pci_port, m_vhca_mk, cmd_on_behalf, device_emulation_manager,
        terminate_scatter_list_mkey, repeated_mkey, dump_fill_mkey, log_max_eq, max_indirection, fixed_buffer_size,
        log_max_mrw_sz, log_max_bsf_list_size, umr_extended_translation_offset, null_mkey, log_max_klm_list_size,
        qpc_extension, log_max_ra_req_dc, ooo_sl_mask, log_max_ra_res_dc, sig_crc64_xp10, sig_crc32c, log_max_ra_req_qp,
        rts2rts_qp_udp_sport, rts2rts_lag_tx_port_affinity, dma_mmo_sq, log_max_ra_res_qp, end_pad, cc_query_allowed,
        cc_modify_allowed, start_pad, cache_line_128byte, gid_table_size_ro, pkey_table_size_ro, rnr_nak_q_counters,
        rts2rts_qp_counters_set_id, rts2rts_qp_dscp, gid_table_size, out_of_seq_cnt, vport_counters,
        retransmission_q_counters, debug, modify_rq_counter_set_id, rq_delay_drop, max_qp_cnt, pkey_table_size,
        vport_group_manager, vhca_group_manager, ib_virt, device_memory, local_ca_ack_delay,
        enhanced_retransmission_q_counters, port_type, num_ports, log_max_msg, dp_ordering_ooo_rw_xrc,
        dp_ordering_ooo_rw_dc, dp_ordering_ooo_rw_rc, general_notification_event, ib_port_sniffer, stat_rate_support,
        sig_block_4048, init2_lag_tx_port_affinity, cqe_version, compact_address_vector, ib_striding_wq,
        repeated_block_disabled, umr_modify_entity_size_disabled, umr_modify_atomic_disabled,
        umr_indirect_mkey_disabled, umr_fence, dc_req_sctr_data_cqe, dc_connect_qp, dc_cnak_trace, drain_sigerr,
        cmdif_checksum, sigerr_cqe, wq_signature, sctr_data_cqe, dct, qos, roce, atomic, extended_retry_count, cq_oi,
        cq_resize, cq_moderation, cq_period_mode_modify, cq_invalidate, ib_striding_wq_cq_first_indication, cq_eq_remap,
        pg, block_lb_mc, exponential_backoff, scqe_break_moderation, cq_period_start_from_cqe, cd, atm, apm,
        vector_calc, umr_ptr_rlkey, imaicl, qp_packet_based, initiator_src_dct_in_cqe, qkv, pkv, set_deth_sqpn,
        rts2rts_primary_sl, initiator_src_dct, dc_v2, xrc, ud, uc, rc, uar_4k, dci_no_rdma_wr_optimized_performance,
        fl_rc_qp_when_roce_disabled, uar_sz, umem_uid_0, log_max_dc_cnak_qps, log_pg_sz, bf, max_qp_retry_freq,
        qp_by_name, mkey_by_name, suspend_qp_uc, suspend_qp_ud, suspend_qp_rc, log_bf_reg_size, atomic_rate_pa, lag_dct,
        lag_tx_port_affinity, lag_master, num_lag_ports, num_of_diagnostic_counters, max_wqe_sz_sq, max_wqe_sz_rq,
        max_wqe_sz_sq_dc, max_qp_mcg, log_max_mcg, log_max_transport_domain, log_max_pd, dp_ordering_ooo_all_ud,
        dp_ordering_ooo_all_uc, dp_ordering_ooo_all_xrc, dp_ordering_ooo_all_dc, dp_ordering_ooo_all_rc, log_max_xrcd,
        eq_overrun_count, invalid_command_count, quota_exceeded_count, log_max_rq, log_max_sq, basic_cyclic_rcv_wqe,
        log_max_rmp, ext_stride_num_range, mkc_order_read_after_write, mkc_order_write_after_write_ro_only,
        log_max_wq_sz, general_obj_types, sq_ts_format, rq_ts_format, create_qp_start_hint, crypto, max_num_eqs,
        sigerr_domain_and_sig_type, log_uar_page_sz, device_frequency_mhz, device_frequency_khz, log_max_pasid,
        num_of_uars_per_page, log_max_guaranteed_connections, log_max_dct_connections, log_max_atomic_size_qp,
        log_max_dci_stream_channels, log_max_dci_errored_streams, log_max_atomic_size_dc, enhanced_cqe_compression,
        crossing_vhca_mkey, mini_cqe_resp_stride_index, cqe_128_always, cqe_compression_128b, cqe_compression,
        cqe_compression_timeout, cqe_compression_max_num, log_max_tm_offloaded_op_size, tag_matching, rndv_offload_rc,
        rndv_offload_dc, log_tag_matching_list_sz, log_max_xrq, affiliate_nic_vport_criteria, native_port_num,
        num_vhca_ports, sf, dma_mmo_qp>;
};
static_assert(well_formed<hca_cap>);

} // namespace ucxl::prm
