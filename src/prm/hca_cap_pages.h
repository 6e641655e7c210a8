// QUERY_HCA_CAP, and its pages beside the general one. op_mod selects a page: page << 1 | current.
#pragma once

#include "hca_cap.h"

namespace ucxl::prm
{

enum class cap_page : std::uint16_t {
    general       = 0x00,
    odp           = 0x02,
    atomic        = 0x03,
    roce          = 0x04,
    nic_flow      = 0x07,
    esw_flow      = 0x08,
    esw           = 0x09,
    qos           = 0x0c,
    device_memory = 0x0f,
    crypto        = 0x1a,
    general_2     = 0x20,
};

template <>
struct value_names<cap_page>
    : one_of<cap_page::general, cap_page::odp, cap_page::atomic, cap_page::roce, cap_page::nic_flow, cap_page::esw_flow,
             cap_page::esw, cap_page::qos, cap_page::device_memory, cap_page::crypto, cap_page::general_2> {
};

// The low bit of op_mod of query_hca_cap: the values in force instead of the maximum.
inline constexpr std::uint16_t cap_current = 1;

// The page that op_mod selects. A number without a name is a page that is not declared here.
constexpr cap_page page_of(std::uint16_t op_mod)
{
    return static_cast<cap_page>(op_mod >> 1);
}

// atomic_operations: the supported operations.
enum class atomic_operation : std::uint16_t {
    compare_swap        = 1U << 0,
    fetch_add           = 1U << 1,
    masked_compare_swap = 1U << 2,
    masked_fetch_add    = 1U << 3,
};

template <>
struct value_names<atomic_operation>
    : any_of<atomic_operation::compare_swap, atomic_operation::fetch_add, atomic_operation::masked_compare_swap,
             atomic_operation::masked_fetch_add> {
};

// The sizes are masks: bit n stands for operands of 2^n bytes.
struct atomic_caps : structure<atomic_caps, 256> {
    static constexpr f<0x040, 2> atomic_req_8b_endianness_mode{};
    static constexpr f<0x046, 1> supported_atomic_req_8b_endianness_mode_1{};
    static constexpr f<0x090, 16, atomic_operation> atomic_operations{};
    static constexpr f<0x0b0, 16> atomic_size_qp{};
    static constexpr f<0x0d0, 16> atomic_size_dc{};
    static constexpr f<0x280, 16> fetch_add_pci_atomic{};
    static constexpr f<0x290, 16> swap_pci_atomic{};
    static constexpr f<0x2a0, 16> compare_swap_pci_atomic{};
    using fields =
        field_list<atomic_req_8b_endianness_mode, supported_atomic_req_8b_endianness_mode_1, atomic_operations,
                   atomic_size_qp, atomic_size_dc, fetch_add_pci_atomic, swap_pci_atomic, compare_swap_pci_atomic>;
};
static_assert(well_formed<atomic_caps>);

// One bit per kind of access that supports page faults.
struct odp_service_cap : structure<odp_service_cap, 4> {
    static constexpr f<0x000, 1> send{};
    static constexpr f<0x001, 1> receive{};
    static constexpr f<0x002, 1> write{};
    static constexpr f<0x003, 1> read{};
    static constexpr f<0x004, 1> atomic{};
    static constexpr f<0x005, 1> srq_receive{};
    static constexpr f<0x006, 1> tag_matching{};
    using fields = field_list<send, receive, write, read, atomic, srq_receive, tag_matching>;
};
static_assert(well_formed<odp_service_cap>);

struct odp_scheme_cap : structure<odp_scheme_cap, 64> {
    static constexpr f<0x040, 1> sig{};
    static constexpr f<0x041, 1> cross_vhca_mkey{};
    static constexpr f<0x042, 1> klm_null_mkey{};
    static constexpr f<0x043, 1> dpa_process_win{};
    static constexpr f<0x047, 1> mmo_wqe{};
    static constexpr f<0x048, 1> local_mmo_wqe{};
    static constexpr f<0x049, 1> aso_wqe{};
    static constexpr f<0x04a, 1> umr_wqe{};
    static constexpr f<0x04b, 1> get_psv_wqe{};
    static constexpr f<0x04c, 1> rget_psv_wqe{};
    static constexpr part<0x080, odp_service_cap> rc{};
    static constexpr part<0x0a0, odp_service_cap> uc{};
    static constexpr part<0x0c0, odp_service_cap> ud{};
    static constexpr part<0x0e0, odp_service_cap> xrc{};
    static constexpr part<0x100, odp_service_cap> dc{};
    using fields = field_list<sig, cross_vhca_mkey, klm_null_mkey, dpa_process_win, mmo_wqe, local_mmo_wqe, aso_wqe,
                              umr_wqe, get_psv_wqe, rget_psv_wqe, rc, uc, ud, xrc, dc>;
};
static_assert(well_formed<odp_scheme_cap>);

struct odp_cap : structure<odp_cap, 256> {
    static constexpr part<0x000, odp_scheme_cap> transport_page_fault{};
    static constexpr part<0x200, odp_scheme_cap> memory_page_fault{};
    static constexpr f<0x600, 1> mem_page_fault{};
    using fields = field_list<transport_page_fault, memory_page_fault, mem_page_fault>;
};
static_assert(well_formed<odp_cap>);

struct roce_cap : structure<roce_cap, 256> {
    static constexpr f<0x004, 1> sw_r_roce_src_udp_port{};
    static constexpr f<0x005, 1> fl_rc_qp_when_roce_disabled{};
    static constexpr f<0x006, 1> fl_rc_qp_when_roce_enabled{};
    static constexpr f<0x01e, 2> qp_ts_format{};
    using fields =
        field_list<sw_r_roce_src_udp_port, fl_rc_qp_when_roce_disabled, fl_rc_qp_when_roce_enabled, qp_ts_format>;
};
static_assert(well_formed<roce_cap>);

struct device_mem_cap : structure<device_mem_cap, 256> {
    static constexpr f<0x000, 1> memic{};
    static constexpr f<0x020, 8> increment_size_sup{}; // bit n: of 2^n bytes
    static constexpr f<0x02b, 5> log_min_memic_alloc_size{};
    static constexpr f<0x030, 8> test_and_set_size_sup{};
    static constexpr f<0x038, 8> log_max_memic_addr_alignment{};
    static constexpr f<0x040, 64> memic_bar_start_addr{};
    static constexpr f<0x080, 32> memic_bar_size{};
    static constexpr f<0x0a0, 32> max_memic_size{};
    static constexpr f<0x200, 32> memic_operations{}; // bit 0 increment, bit 1 test-and-set
    using fields = field_list<memic, increment_size_sup, log_min_memic_alloc_size, test_and_set_size_sup,
                              log_max_memic_addr_alignment, memic_bar_start_addr, memic_bar_size, max_memic_size,
                              memic_operations>;
};
static_assert(well_formed<device_mem_cap>);

// The kinds of object that other functions may get access to, as bits of allowed_object_for_other_vhca_access.
enum class vhca_object : std::uint64_t {
    mkey = 1U << 2,
};

template <>
struct value_names<vhca_object> : any_of<vhca_object::mkey> {
};

// The kinds of alias, as bits of cross_vhca_object_to_object_supported.
enum class vhca_alias : std::uint32_t {
    local_mkey_to_remote_mkey = 1U << 8,
};

template <>
struct value_names<vhca_alias> : any_of<vhca_alias::local_mkey_to_remote_mkey> {
};

struct hca_cap_2 : structure<hca_cap_2, 256> {
    static constexpr f<0x080, 1> migratable{};
    static constexpr f<0x088, 1> dp_ordering_force{};
    static constexpr f<0x090, 1> atomic_rate_pa{};
    static constexpr f<0x091, 1> introspection_mkey_access_allowed{};
    static constexpr f<0x092, 1> query_vuid{};
    static constexpr f<0x0c0, 1> multi_sl_qp{};
    static constexpr f<0x0e0, 32, vhca_alias> cross_vhca_object_to_object_supported{};
    static constexpr f<0x100, 64, vhca_object> allowed_object_for_other_vhca_access{};
    static constexpr f<0x140, 32> introspection_mkey{};
    static constexpr f<0x1ac, 4> log_min_mkey_entity_size{};
    static constexpr f<0x1c0, 64> general_obj_types_127_64{};
    static constexpr f<0x200, 32> repeated_mkey_v2{};
    static constexpr f<0x3c0, 1> mkey_by_name_reserve{};
    static constexpr f<0x3c2, 6> mkey_by_name_reserve_log_size{};
    static constexpr f<0x3c8, 24> mkey_by_name_reserve_base{};
    using fields =
        field_list<migratable, dp_ordering_force, atomic_rate_pa, introspection_mkey_access_allowed, query_vuid,
                   multi_sl_qp, cross_vhca_object_to_object_supported, allowed_object_for_other_vhca_access,
                   introspection_mkey, log_min_mkey_entity_size, general_obj_types_127_64, repeated_mkey_v2,
                   mkey_by_name_reserve, mkey_by_name_reserve_log_size, mkey_by_name_reserve_base>;
};
static_assert(well_formed<hca_cap_2>);

struct query_hca_cap_in : command_input<query_hca_cap_in, 16> {
    static constexpr f<0x040, 1> other_function{};
    static constexpr f<0x050, 16> function_id{};
    using fields = field_list<opcode, uid, op_mod, other_function, function_id>;
};
static_assert(well_formed<query_hca_cap_in>);

// The page that was asked for starts at the offset of the alternatives below.
struct query_hca_cap_out : command_output<query_hca_cap_out, 4112> {
    static constexpr part<0x080, hca_cap> general{};
    static constexpr alt_part<0x080, hca_cap_2> general_2{};
    static constexpr alt_part<0x080, atomic_caps> atomic{};
    static constexpr alt_part<0x080, odp_cap> odp{};
    static constexpr alt_part<0x080, roce_cap> roce{};
    static constexpr alt_part<0x080, device_mem_cap> device_memory{};
    using fields = field_list<status, syndrome, general, general_2, atomic, odp, roce, device_memory>;
};
static_assert(well_formed<query_hca_cap_out>);

} // namespace ucxl::prm
