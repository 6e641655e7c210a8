// Every structure of src/prm, for tests that go over all of them.
#pragma once

#include "prm/cq.h"
#include "prm/cqe.h"
#include "prm/doorbell.h"
#include "prm/eq.h"
#include "prm/hca_cap_pages.h"
#include "prm/mkey.h"
#include "prm/object.h"
#include "prm/port.h"
#include "prm/qp.h"
#include "prm/resource.h"
#include "prm/rq.h"
#include "prm/umr.h"

namespace ucxl::prm
{

template <typename... Structures>
struct structure_list {
    template <typename Function>
    static void for_each(Function&& function)
    {
        (function.template operator()<Structures>(), ...);
    }
};

using all_structures = structure_list<
    any_input, any_output, cqc, create_cq_in, create_cq_out, modify_cq_in, plain_cq_in, query_cq_out, cqe64,
    cqe64_error, compressed_cqe, cqe128, mini_cqe, qp_doorbell_record, srq_doorbell_record, cq_doorbell_record,
    cq_doorbell, eqc, create_eq_in, create_eq_out, destroy_eq_in, eqe, event_completion, event_cq_error, event_qp_srq,
    event_dct, event_port_change, hca_cap, atomic_caps, odp_service_cap, odp_scheme_cap, odp_cap, roce_cap,
    device_mem_cap, hca_cap_2, query_hca_cap_in, query_hca_cap_out, mkc, klm, ksm, mtt, create_mkey_in, create_mkey_out,
    query_mkey_in, query_mkey_out, destroy_mkey_in, query_special_contexts_out, create_psv_in, create_psv_out,
    destroy_psv_in, general_object_in, general_object_out, alias_context, create_alias_object_in,
    query_alias_object_out, allow_other_vhca_access_in, query_hca_vport_context_in, hca_vport_context,
    query_hca_vport_context_out, query_hca_vport_gid_in, gid, query_hca_vport_gid_out, lag_context, query_lag_out,
    mad_ifc_in, mad_ifc_out, access_register_in, paos_register, create_qp_in, create_qp_out, modify_qp_in,
    modify_qp_ext_in, modify_qp_out, plain_qp_in, query_qp_in, query_qp_out, dctc, create_dct_in, create_dct_out,
    plain_dct_in, query_dct_out, ads, qpc, qpc_ext, alloc_pd_out, dealloc_pd_in, alloc_uar_out, dealloc_uar_in,
    alloc_xrcd_out, dealloc_xrcd_in, alloc_transport_domain_out, dealloc_transport_domain_in, alloc_q_counter_out,
    dealloc_q_counter_in, alloc_flow_counter_in, alloc_flow_counter_out, dealloc_flow_counter_in, query_flow_counter_in,
    query_flow_counter_out, umem, create_umem_in, create_umem_out, destroy_umem_in, wq, rmpc, create_rmp_in,
    create_rmp_out, modify_rmp_in, plain_rmp_in, query_rmp_out, tag_matching_topology, xrqc, create_xrq_in,
    create_xrq_out, destroy_xrq_in, set_xrq_dc_params_entry_in, wqe_umr_control_segment, wqe_pointer_segment,
    repeat_block_header, repeat_block_entry, bsf, wqe_control_segment, wqe_remote_address_segment, wqe_atomic_segment,
    wqe_masked_swap_segment, wqe_masked_add_segment, wqe_masked_swap32_segment, wqe_masked_add32_segment,
    wqe_compact_address_vector, wqe_address_vector, wqe_data_segment, wqe_xrc_segment, wqe_inline_segment,
    wqe_srq_next_segment, wqe_wait_segment, wqe_set_psv_segment, wqe_get_psv_segment, wqe_mmo_metadata_segment,
    wqe_ethernet_segment>;

} // namespace ucxl::prm
