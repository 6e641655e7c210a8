// Compares src/prm with the C headers of rdma-core and UCX that declare the same structures (made by
// make_ifc_vectors.py): the place of every field.
#include <gtest/gtest.h>

#include "golden.h"

namespace ucxl::prm
{
namespace
{

const std::map<std::string, golden_structure>& vectors()
{
    static const auto all = load_golden(PRM_VECTORS "/ifc_vectors.txt");
    return all;
}

// Structures with another name here; several of theirs may be one of ours.
const std::map<std::string, std::string_view> our_names = {
    {"cmd_hca_cap", "hca_cap"},
    {"cmd_hca_cap_2", "hca_cap_2"},
    {"odp_per_transport_service_cap", "odp_service_cap"},
    {"destroy_qp_in", "plain_qp_in"},
    {"modify_qp_in", "plain_qp_in"},
    {"rst2init_qp_in", "modify_qp_in"},
    {"init2rtr_qp_in", "modify_qp_in"},
    {"rtr2rts_qp_in", "modify_qp_in"},
    {"rts2rts_qp_in", "modify_qp_ext_in"},
    {"init2init_qp_in", "modify_qp_ext_in"},
    {"init2rtr_qp_out", "modify_qp_out"},
    {"init2init_qp_out", "modify_qp_out"},
    {"destroy_dct_in", "plain_dct_in"},
    {"query_dct_in", "plain_dct_in"},
    {"destroy_cq_in", "plain_cq_in"},
    {"destroy_rmp_in", "plain_rmp_in"},
    {"tag_matching_topology_context", "tag_matching_topology"},
    {"general_obj_in_cmd_hdr", "general_object_in"},
    {"general_obj_out_cmd_hdr", "general_object_out"},
    {"create_alias_obj_in", "create_alias_object_in"},
    {"create_alias_obj_out", "query_alias_object_out"},
    {"lagc", "lag_context"},
};

const std::set<std::string> anything = {"*"};

// The fields of their structures with another name, or that only they have. We may have more fields everywhere.
const std::map<std::string, differences> expected = {
    {"rdma_core.cmd_hca_cap",
     {.renamed     = {{"modify_rq_counter_set_id", "modify_rq_counters_set_id"},
                      {"dp_ordering_ooo_rw_xrc", "multi_path_xrc_rdma"},
                      {"dp_ordering_ooo_rw_dc", "multi_path_dc_rdma"},
                      {"dp_ordering_ooo_rw_rc", "multi_path_rc_rdma"}},
      .only_theirs = anything}},
    {"ucx.cmd_hca_cap",
     {.renamed     = {{"enhanced_retransmission_q_counters", "enhanced_error_q_counters"},
                      {"umr_ptr_rlkey", "umr_ptr_rlky"}},
      .only_theirs = anything}},
    {"rdma_core.cmd_hca_cap_2", {.only_theirs = anything}},
    {"ucx.cmd_hca_cap_2", {.only_theirs = anything}},
    {"rdma_core.atomic_caps",
     {.renamed = {{"atomic_req_8b_endianness_mode", "atomic_req_8B_endianness_mode"},
                  {"supported_atomic_req_8b_endianness_mode_1", "supported_atomic_req_8B_endianness_mode_1"}}}},
    {"ucx.atomic_caps",
     {.renamed = {{"atomic_req_8b_endianness_mode", "atomic_req_8B_endianness_mode"},
                  {"supported_atomic_req_8b_endianness_mode_1", "supported_atomic_req_8B_endianness_mode_1"}}}},
    // rdma-core has one scheme where the page has two by now.
    {"rdma_core.odp_cap",
     {.only_theirs = {"sig", "rc_odp_caps", "uc_odp_caps", "ud_odp_caps", "xrc_odp_caps", "dc_odp_caps"}}},
    {"ucx.odp_cap",
     {.renamed = {{"transport_page_fault", "transport_page_fault_scheme_cap"},
                  {"memory_page_fault", "memory_page_fault_scheme_cap"}}}},
    {"ucx.odp_scheme_cap",
     {.renamed = {{"rc", "rc_odp_caps"},
                  {"uc", "uc_odp_caps"},
                  {"ud", "ud_odp_caps"},
                  {"xrc", "xrc_odp_caps"},
                  {"dc", "dc_odp_caps"}}}},
    {"rdma_core.device_mem_cap", {.only_theirs = anything}},
    {"rdma_core.mkc", {.renamed = {{"log_entity_size", "log_page_size"}}}},
    {"ucx.mkc", {.renamed = {{"crossing_target_vhca_id", "crossing_target_gvmi_id"}}}},
    {"rdma_core.create_mkey_in", {.renamed = {{"memory_key", "memory_key_mkey_entry"}}}},
    {"ucx.create_mkey_in", {.renamed = {{"memory_key", "memory_key_mkey_entry"}}}},
    {"rdma_core.ads", {.only_theirs = {"rmac_47_32", "rmac_31_0"}}},
    {"ucx.ads", {.only_theirs = {"rmac_47_32", "rmac_31_0"}}},
    {"rdma_core.qpc", {.renamed = {{"rlkey", "rlky"}}}},
    {"ucx.qpc", {.renamed = {{"rlkey", "rlky"}}}},
    {"ucx.dctc", {.renamed = {{"rlkey", "rlky"}}}},
    {"rdma_core.rts2rts_qp_in", {.renamed = {{"extension", "qpc_data_ext"}}}},
    {"rdma_core.init2init_qp_in", {.renamed = {{"extension", "qpc_data_ext"}}}},
    {"ucx.init2init_qp_in", {.renamed = {{"qpc", "qpc_data"}, {"extension", "qpc_data_extension"}}}},
    {"rdma_core.query_dct_out", {.renamed = {{"dct_context", "dctc"}}}},
    {"ucx.create_dct_in", {.renamed = {{"dct_context", "dct_context_entry"}}}},
    {"ucx.cqc", {.renamed = {{"cqe_compression_en", "cqe_comp_en"}}}},
    // The field of the interrupt number has grown.
    {"rdma_core.eqc", {.renamed = {{"intr", ""}}, .only_theirs = {"intr"}}},
    {"rdma_core.create_eq_in", {.renamed = {{"eqc", "eq_context_entry"}}}},
    {"rdma_core.create_eq_out", {.renamed = {{"eqn", "eq_number"}}}},
    {"rdma_core.destroy_eq_in", {.renamed = {{"input_eqn", "eq_number"}, {"eqn", "eq_number"}}}},
    {"ucx.xrqc", {.renamed = {{"tag_matching", "tag_matching_topology_context"}}}},
    {"ucx.create_alias_obj_in", {.renamed = {{"alias", "alias_ctx"}}, .only_theirs = {"hdr"}}},
    {"ucx.create_alias_obj_out", {.renamed = {{"alias", "alias_ctx"}}, .only_theirs = {"hdr"}}},
    {"rdma_core.query_lag_out", {.renamed = {{"context", "ctx"}}}},
    {"ucx.query_lag_out", {.renamed = {{"context", "lag_context"}}}},
};

// UCX's reserved words before `lid` are 4 bytes shorter than in rdma-core's Python definitions and Linux. It reads
// nothing there.
bool is_known_to_differ(const std::string& name)
{
    return name == "ucx.hca_vport_context" || name == "ucx.query_hca_vport_context_out";
}

TEST(prm_ifc, every_structure_agrees)
{
    int compared = 0;
    for (const auto& [name, golden] : vectors()) {
        if (is_known_to_differ(name)) {
            continue;
        }
        SCOPED_TRACE(name);
        const std::string plain = name.substr(name.find('.') + 1);
        const auto renamed      = our_names.find(plain);
        const auto ours         = registry().find(renamed == our_names.end() ? plain : renamed->second);
        ASSERT_NE(ours, registry().end());
        const auto known = expected.find(name);
        auto differing   = known == expected.end() ? differences{} : known->second;
        differing.only_ours.insert("*");
        compare_places(*ours->second.info, golden, differing);
        compared++;
    }
    EXPECT_GE(compared, 110);
}

} // namespace
} // namespace ucxl::prm
