// Compares src/prm with scapy's definitions of the same structures (made by make_scapy_vectors.py), in both directions:
// the place of every field, the values read from scapy's bytes, and the bytes that result from writing all fields.
#include <gtest/gtest.h>

#include "golden.h"

namespace ucxl::prm
{
namespace
{

const std::map<std::string, golden_structure>& vectors()
{
    static const auto all = load_golden(PRM_VECTORS "/scapy_vectors.txt");
    return all;
}

void compare_values(const structure_access& structure, const golden_structure& golden, const differences& expected)
{
    std::vector<std::byte> bytes = golden.bytes;
    ASSERT_EQ(bytes.size(), structure.info->size_bytes);
    for (const field_access& ours : structure.numbers) {
        const golden_field* theirs = find(golden, expected, ours.info->name);
        if (theirs == nullptr) {
            continue;
        }
        const std::uint64_t value = std::stoull(theirs->value, nullptr, 16);
        EXPECT_EQ(ours.get(golden.bytes.data()), value) << ours.info->name;
        EXPECT_TRUE(ours.set(bytes.data(), 0));
        EXPECT_EQ(ours.get(bytes.data()), 0U) << ours.info->name;
        EXPECT_TRUE(ours.set(bytes.data(), value)) << ours.info->name;
    }
    EXPECT_EQ(bytes, golden.bytes);
}

void compare(std::string_view name, const char* scapy_name, const differences& expected = {})
{
    SCOPED_TRACE(scapy_name);
    const auto golden    = vectors().find(scapy_name);
    const auto structure = registry().find(name);
    ASSERT_NE(golden, vectors().end());
    ASSERT_NE(structure, registry().end());
    compare_places(*structure->second.info, golden->second, expected);
    compare_values(structure->second, golden->second, expected);
}

TEST(prm_scapy, memory_keys)
{
    compare("mkc", "SwMkc", {.only_ours = {"crossing_target_mkey"}});
    compare("create_mkey_in", "CreateMkeyIn",
            {.renamed = {{"memory_key", "sw_mkc"}}, .only_ours = {"cmd_on_behalf", "function_id"}});
    compare("create_mkey_out", "CreateMkeyOut");
}

TEST(prm_scapy, completion_queues)
{
    compare("cqc", "SwCqc",
            {.only_ours   = {"cqe_comp_layout", "mini_cqe_res_format_ext", "cq_timestamp_format", "dbr_addr"},
             .only_theirs = {"db_record_addr_63_32", "db_record_addr_31_3"}});
    compare(
        "create_cq_in", "CreateCqIn",
        {.renamed = {{"input_cqn", "cqn"}, {"cqc", "sw_cqc"}, {"cq_umem_offset", "e_mtt_pointer_or_cq_umem_offset"}}});
    compare("create_cq_out", "CreateCqOut");
}

TEST(prm_scapy, queue_pairs)
{
    compare("ads", "SwAds", {.renamed = {{"dei_cfi", "dei_cfi_reserved_from_prm_041"}}});
    compare("qpc", "SwQpc",
            {.renamed   = {{"dp_ordering_0", "multi_path"}},
             .only_ours = {"isolate_vl_tc", "rdma_wr_disabled", "dp_ordering_force", "dp_ordering_1",
                           "log_num_dci_stream_channels", "log_num_dci_errored_streams"}});
    compare(
        "create_qp_in", "CreateQpIn",
        {.renamed = {{"qpc", "sw_qpc"}, {"wq_umem_offset", "e_mtt_pointer_or_wq_umem_offset"}}, .only_ours = {"ece"}});
    compare("create_qp_out", "CreateQpOut", {.only_ours = {"ece"}});
    compare("modify_qp_in", "ModifyQpIn", {.renamed = {{"qpc", "sw_qpc"}}, .only_ours = {"qpc_ext"}});
    compare("modify_qp_out", "ModifyQpOut", {.only_ours = {"ece"}});
    compare("query_qp_in", "QueryQpIn");
    compare("query_qp_out", "QueryQpOut", {.renamed = {{"qpc", "sw_qpc"}}, .only_ours = {"ece"}});
}

TEST(prm_scapy, event_queues)
{
    compare("eqc", "SwEqc");
    compare("create_eq_in", "CreateEqIn",
            {.renamed     = {{"input_eqn", "eqn"}, {"eqc", "sw_eqc"}},
             .only_ours   = {"event_bitmask"},
             .only_theirs = {"event_bitmask_63_0", "event_bitmask_127_640", "event_bitmask_191_128",
                             "event_bitmask_255_192"}});
    compare("create_eq_out", "CreateEqOut");
    compare("eqe", "SwEqe");
    compare("event_completion", "CompEvent");
    compare("event_cq_error", "CqError");
    compare("event_port_change", "PortStateChangeEvent");
}

TEST(prm_scapy, ports)
{
    compare("query_hca_vport_context_in", "QueryHcaVportContextIn");
    compare("hca_vport_context", "HcaVportContext");
    compare("query_hca_vport_context_out", "QueryHcaVportContextOut", {.renamed = {{"context", "hca_vport_context"}}});
    compare("query_hca_vport_gid_in", "QueryHcaVportGidIn");
    compare("gid", "IbGidCmd");
    compare("query_hca_vport_gid_out", "QueryHcaVportGidOut");
    compare("mad_ifc_in", "MadIfcIn");
    compare("mad_ifc_out", "MadIfcOut");
    compare("paos_register", "PaosReg");
}

TEST(prm_scapy, capabilities)
{
    compare("query_hca_cap_in", "QueryHcaCapIn");
    // UCX and Linux have enhanced_cqe_compression 11 bits before scapy's place.
    compare("hca_cap", "CmdHcaCap",
            {.renamed     = {{"log_max_srq", "log_max_srqs"},
                             {"cmd_on_behalf", "hotplug_manager"},
                             {"device_emulation_manager", "nvme_device_emulation_manager"},
                             {"qpc_extension", "qp_context_extension"},
                             {"rts2rts_qp_udp_sport", "rts2rts_udp_sport"},
                             {"dma_mmo_sq", "dma_mmo"},
                             {"modify_rq_counter_set_id", "modify_rq_counters_set_id"},
                             {"dp_ordering_ooo_rw_xrc", "multi_path_xrc_rdma"},
                             {"dp_ordering_ooo_rw_dc", "multi_path_dc_rdma"},
                             {"dp_ordering_ooo_rw_rc", "multi_path_rc_rdma"},
                             {"ib_striding_wq", "ib_link_list_striding_wq"},
                             {"enhanced_cqe_compression", ""}},
             .only_ours   = {"ib_striding_wq_cq_first_indication", "dci_no_rdma_wr_optimized_performance", "umem_uid_0",
                             "suspend_qp_uc", "suspend_qp_ud", "suspend_qp_rc", "dp_ordering_ooo_all_ud",
                             "dp_ordering_ooo_all_uc", "dp_ordering_ooo_all_xrc", "dp_ordering_ooo_all_dc",
                             "dp_ordering_ooo_all_rc", "sigerr_domain_and_sig_type", "dma_mmo_qp",
                             "enhanced_cqe_compression", "atomic_rate_pa", "mkc_order_read_after_write",
                             "mkc_order_write_after_write_ro_only"},
             .only_theirs = {"*"}});
    compare("hca_cap_2", "CmdHcaCap2",
            {.renamed     = {{"dp_ordering_force", "multi_path_force"}},
             .only_ours   = {"atomic_rate_pa", "mkey_by_name_reserve", "mkey_by_name_reserve_log_size",
                             "mkey_by_name_reserve_base"},
             .only_theirs = {"*"}});
    compare("odp_service_cap", "OdpPerTransportServiceCap", {.renamed = {{"srq_receive", "rmp"}}});
    compare("odp_scheme_cap", "OdpSchemeCap",
            {.renamed = {{"rc", "rc_odp_caps"},
                         {"uc", "uc_odp_caps"},
                         {"ud", "ud_odp_caps"},
                         {"xrc", "xrc_odp_caps"},
                         {"dc", "dc_odp_caps"}}});
    compare("odp_cap", "OdpCap",
            {.renamed = {{"transport_page_fault", "transport_page_fault_scheme_cap"},
                         {"memory_page_fault", "memory_page_fault_scheme_cap"}}});
}

TEST(prm_scapy, plain_objects)
{
    compare("alloc_pd_out", "AllocPdOut");
    compare("alloc_flow_counter_in", "AllocFlowCounterIn");
    compare("alloc_flow_counter_out", "AllocFlowCounterOut");
    compare("dealloc_flow_counter_in", "DeallocFlowCounterIn");
    compare("query_flow_counter_in", "QueryFlowCounterIn");
}

} // namespace
} // namespace ucxl::prm
