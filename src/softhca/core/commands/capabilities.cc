// QUERY_HCA_CAP. A feature whose bit is not set here does not exist in the model. The current and the maximum values
// are the same, because SET_HCA_CAP belongs to the kernel and does not exist here.
#include "call.h"
#include "prm/hca_cap_pages.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/keys/access.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using prm::hca_cap;

constexpr std::uint8_t log2_of(std::size_t power)
{
    return static_cast<std::uint8_t>(std::countr_zero(power));
}

void describe_sizes(prm::view<hca_cap> cap)
{
    cap.put<log_max_srq_size>(hca_cap::log_max_srq_sz);
    cap.put<log_max_qp_size>(hca_cap::log_max_qp_sz);
    cap.put<log_max_cq_size>(hca_cap::log_max_cq_sz);
    cap.put<log2_of(max_qps)>(hca_cap::log_max_qp);
    cap.put<log2_of(max_srqs)>(hca_cap::log_max_srq);
    cap.put<log2_of(max_srqs)>(hca_cap::log_max_rmp);
    cap.put<log2_of(max_cqs)>(hca_cap::log_max_cq);
    cap.put<log2_of(max_pds)>(hca_cap::log_max_pd);
    cap.put<log_max_message>(hca_cap::log_max_msg);
    cap.put<log_max_reads>(hca_cap::log_max_ra_req_qp);
    cap.put<log_max_reads>(hca_cap::log_max_ra_res_qp);
    cap.put<log_max_qp_size>(hca_cap::log_max_wq_sz);
    cap.put<max_send_wqe_bytes>(hca_cap::max_wqe_sz_sq);
    cap.put<max_receive_wqe_bytes>(hca_cap::max_wqe_sz_rq);
    cap.put<12>(hca_cap::log_pg_sz);
    cap.put<1>(hca_cap::num_of_uars_per_page);
    cap.put<clock_khz / 1000>(hca_cap::device_frequency_mhz);
    cap.put<clock_khz>(hca_cap::device_frequency_khz);
}

void describe_port(prm::view<hca_cap> cap, const function_record& function)
{
    cap.put(hca_cap::vhca_id, function.vhca_id);
    cap.put<prm::port_type::infiniband>(hca_cap::port_type);
    cap.put<1>(hca_cap::num_ports);
    // The smallest tables that these fields can express: 8 GIDs, 128 pkeys. One entry of each is used.
    cap.put<0>(hca_cap::gid_table_size);
    cap.put<0>(hca_cap::pkey_table_size);
    cap.put<true>(hca_cap::ib_virt);
    // The port tells which service levels the subnet routes adaptively: none.
    cap.put<true>(hca_cap::ooo_sl_mask);
}

void describe_transports(const card& card, prm::view<hca_cap> cap)
{
    cap.put<true>(hca_cap::rc);
    cap.put<true>(hca_cap::uc);
    cap.put<true>(hca_cap::ud);
    cap.put<true>(hca_cap::basic_cyclic_rcv_wqe);
    cap.put<true>(hca_cap::cq_oi);
    cap.put<true>(hca_cap::cq_resize);
    cap.put<true>(hca_cap::uar_4k);
    cap.put<true>(hca_cap::compact_address_vector);
    cap.put<1>(hca_cap::cqe_version);
    cap.put<true>(hca_cap::cqe_128_always);
    cap.put(hca_cap::atomic, card.atomics);
    cap.put(hca_cap::atomic_rate_pa, card.atomic_rate_pa);
    cap.put<log2_of(8)>(hca_cap::log_max_atomic_size_qp);
}

void describe_dynamic_connections(const card& card, prm::view<hca_cap> cap)
{
    cap.put<true>(hca_cap::dct);
    cap.put<true>(hca_cap::dc_req_sctr_data_cqe);
    cap.put<log_max_reads>(hca_cap::log_max_ra_req_dc);
    cap.put<log_max_reads>(hca_cap::log_max_ra_res_dc);
    cap.put(hca_cap::max_wqe_sz_sq_dc, card.dc_wqe);
    cap.put<log2_of(max_qps)>(hca_cap::log_max_dct_connections);
    cap.put<log2_of(8)>(hca_cap::log_max_atomic_size_dc);
    cap.put<log_max_dci_streams>(hca_cap::log_max_dci_stream_channels);
    cap.put<log_max_dci_streams>(hca_cap::log_max_dci_errored_streams);
    cap.put<true>(hca_cap::qpc_extension); // to reset a stream channel
}

void describe_keys(const card& card, prm::view<hca_cap> cap)
{
    if (card.high_keys) {
        cap.put<key_index_bits>(hca_cap::log_max_mkey);
    } else {
        cap.put<log2_of(max_mkeys)>(hca_cap::log_max_mkey);
    }
    cap.put<64>(hca_cap::log_max_mrw_sz);
    cap.put(hca_cap::max_indirection, card.indirection);
    cap.put<log_max_klm_list>(hca_cap::log_max_klm_list_size);
    cap.put(hca_cap::fixed_buffer_size, card.fixed_buffer_size);
    cap.put(hca_cap::repeated_block_disabled, !card.repeat_blocks);
    cap.put(hca_cap::umr_modify_atomic_disabled, !card.umr_modifies_atomic);
    cap.put(hca_cap::umr_ptr_rlkey, card.umr_ptr_rlkey);
    cap.put(hca_cap::imaicl, card.imaicl);
    cap.put<true>(hca_cap::dump_fill_mkey);
    cap.put(hca_cap::device_memory, card.device_memory);
    cap.put(hca_cap::relaxed_ordering_write, card.relaxed_ordering);
    cap.put(hca_cap::mkc_order_write_after_write_ro_only, card.relaxed_only);
    // The adversarial order shows what a missing fence does (adversarial_order.h, rule 3).
    (void)cap.set(hca_cap::umr_fence, card.umr_fence);
}

void describe_general(const command_call& call, prm::view<hca_cap> cap)
{
    describe_sizes(cap);
    describe_port(cap, call.caller());
    const card& card = call.memory().card;
    describe_transports(card, cap);
    describe_dynamic_connections(card, cap);
    describe_keys(card, cap);
    cap.put<true>(hca_cap::hca_cap_2);
}

void describe_general_2(const card& card, prm::view<prm::hca_cap_2> cap)
{
    if (!card.exports) {
        return;
    }
    cap.put<prm::vhca_alias::local_mkey_to_remote_mkey>(prm::hca_cap_2::cross_vhca_object_to_object_supported);
    cap.put<prm::vhca_object::mkey>(prm::hca_cap_2::allowed_object_for_other_vhca_access);
}

// The mode says only that 8-byte results are in the byte order of the host. Atomics are atomic among each other on the
// whole fabric, not against the CPU: there are no PCI atomics.
void describe_atomics(prm::view<prm::atomic_caps> cap)
{
    constexpr auto operations = static_cast<prm::atomic_operation>(
        std::to_underlying(prm::atomic_operation::compare_swap) | std::to_underlying(prm::atomic_operation::fetch_add) |
        std::to_underlying(prm::atomic_operation::masked_compare_swap) |
        std::to_underlying(prm::atomic_operation::masked_fetch_add));
    constexpr std::uint16_t sizes = 4 | 8; // bytes
    cap.put<1>(prm::atomic_caps::atomic_req_8b_endianness_mode);
    cap.put<true>(prm::atomic_caps::supported_atomic_req_8b_endianness_mode_1);
    cap.put<operations>(prm::atomic_caps::atomic_operations);
    cap.put<sizes>(prm::atomic_caps::atomic_size_qp);
    cap.put<sizes>(prm::atomic_caps::atomic_size_dc);
}

// No operations through addresses of device memory (increment, test-and-set): the shim does not map them.
void describe_device_memory(prm::view<prm::device_mem_cap> cap)
{
    cap.put<true>(prm::device_mem_cap::memic);
    cap.put<log2_of(memic_granule_bytes)>(prm::device_mem_cap::log_min_memic_alloc_size);
    cap.put<log2_of(memic_page_bytes / memic_granule_bytes)>(prm::device_mem_cap::log_max_memic_addr_alignment);
    cap.put<memic_bytes>(prm::device_mem_cap::memic_bar_size);
    cap.put<memic_bytes>(prm::device_mem_cap::max_memic_size);
}

command_status query_hca_cap(command_call& call, prm::const_view<prm::query_hca_cap_in> input,
                             prm::view<prm::query_hca_cap_out> output)
{
    if (input.get(prm::query_hca_cap_in::other_function)) {
        return call.refuse(command_status::bad_parameter, "a function knows of itself only");
    }
    switch (prm::page_of(input.get(prm::query_hca_cap_in::op_mod))) {
    case prm::cap_page::general:
        describe_general(call, output.at(prm::query_hca_cap_out::general));
        return command_status::ok;
    case prm::cap_page::general_2:
        describe_general_2(call.memory().card, output.at(prm::query_hca_cap_out::general_2));
        return command_status::ok;
    case prm::cap_page::atomic:
        describe_atomics(output.at(prm::query_hca_cap_out::atomic));
        return command_status::ok;
    case prm::cap_page::device_memory:
        describe_device_memory(output.at(prm::query_hca_cap_out::device_memory));
        return command_status::ok;
    case prm::cap_page::odp:
    case prm::cap_page::roce:
    case prm::cap_page::nic_flow:
    case prm::cap_page::esw_flow:
    case prm::cap_page::esw:
    case prm::cap_page::qos:
    case prm::cap_page::crypto:
        // Known pages whose features do not exist.
        return command_status::ok;
    }
    return call.refuse(command_status::bad_parameter, "no such page");
}

// A caller that declares a shorter page gets the beginning of it.
constexpr std::size_t shortest_page = prm::any_output::size_bytes + hca_cap::size_bytes;

constexpr command_entry entries[] = {
    entry<prm::query_hca_cap_in, prm::query_hca_cap_out, query_hca_cap>(prm::command::query_hca_cap, shortest_page),
};

} // namespace

command_entries capability_commands()
{
    return entries;
}

} // namespace ucxl::softhca
