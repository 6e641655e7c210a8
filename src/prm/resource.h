// Objects that are little more than a number: protection domains, doorbell pages, user memory, counters.
#pragma once

#include "command.h"

namespace ucxl::prm
{

struct alloc_pd_out : command_output<alloc_pd_out, 16> {
    static constexpr f<0x048, 24> pd{};
    using fields = field_list<status, syndrome, pd>;
};
static_assert(well_formed<alloc_pd_out>);

struct dealloc_pd_in : command_input<dealloc_pd_in, 16> {
    static constexpr f<0x048, 24> pd{};
    using fields = field_list<opcode, uid, op_mod, pd>;
};
static_assert(well_formed<dealloc_pd_in>);

struct alloc_uar_out : command_output<alloc_uar_out, 16> {
    static constexpr f<0x048, 24> uar{};
    using fields = field_list<status, syndrome, uar>;
};
static_assert(well_formed<alloc_uar_out>);

struct dealloc_uar_in : command_input<dealloc_uar_in, 16> {
    static constexpr f<0x048, 24> uar{};
    using fields = field_list<opcode, uid, op_mod, uar>;
};
static_assert(well_formed<dealloc_uar_in>);

struct alloc_xrcd_out : command_output<alloc_xrcd_out, 16> {
    static constexpr f<0x048, 24> xrcd{};
    using fields = field_list<status, syndrome, xrcd>;
};
static_assert(well_formed<alloc_xrcd_out>);

struct dealloc_xrcd_in : command_input<dealloc_xrcd_in, 16> {
    static constexpr f<0x048, 24> xrcd{};
    using fields = field_list<opcode, uid, op_mod, xrcd>;
};
static_assert(well_formed<dealloc_xrcd_in>);

struct alloc_transport_domain_out : command_output<alloc_transport_domain_out, 16> {
    static constexpr f<0x048, 24> transport_domain{};
    using fields = field_list<status, syndrome, transport_domain>;
};
static_assert(well_formed<alloc_transport_domain_out>);

struct dealloc_transport_domain_in : command_input<dealloc_transport_domain_in, 16> {
    static constexpr f<0x048, 24> transport_domain{};
    using fields = field_list<opcode, uid, op_mod, transport_domain>;
};
static_assert(well_formed<dealloc_transport_domain_in>);

struct alloc_q_counter_out : command_output<alloc_q_counter_out, 16> {
    static constexpr f<0x058, 8> counter_set_id{};
    using fields = field_list<status, syndrome, counter_set_id>;
};
static_assert(well_formed<alloc_q_counter_out>);

struct dealloc_q_counter_in : command_input<dealloc_q_counter_in, 16> {
    static constexpr f<0x058, 8> counter_set_id{};
    using fields = field_list<opcode, uid, op_mod, counter_set_id>;
};
static_assert(well_formed<dealloc_q_counter_in>);

struct alloc_flow_counter_in : command_input<alloc_flow_counter_in, 16> {
    static constexpr f<0x040, 32> flow_counter_id{};
    static constexpr f<0x078, 8> flow_counter_bulk{};
    using fields = field_list<opcode, uid, op_mod, flow_counter_id, flow_counter_bulk>;
};
static_assert(well_formed<alloc_flow_counter_in>);

struct alloc_flow_counter_out : command_output<alloc_flow_counter_out, 16> {
    static constexpr f<0x040, 32> flow_counter_id{};
    using fields = field_list<status, syndrome, flow_counter_id>;
};
static_assert(well_formed<alloc_flow_counter_out>);

struct dealloc_flow_counter_in : command_input<dealloc_flow_counter_in, 16> {
    static constexpr f<0x040, 32> flow_counter_id{};
    using fields = field_list<opcode, uid, op_mod, flow_counter_id>;
};
static_assert(well_formed<dealloc_flow_counter_in>);

struct query_flow_counter_in : command_input<query_flow_counter_in, 32> {
    static constexpr f<0x060, 32> mkey{};
    static constexpr f<0x080, 64> address{};
    static constexpr f<0x0c0, 1> clear{};
    static constexpr f<0x0c1, 1> dump_to_memory{};
    static constexpr f<0x0c2, 30> num_of_counters{};
    static constexpr f<0x0e0, 32> flow_counter_id{};
    using fields =
        field_list<opcode, uid, op_mod, mkey, address, clear, dump_to_memory, num_of_counters, flow_counter_id>;
};
static_assert(well_formed<query_flow_counter_in>);

// Followed by a pair like this for each further counter.
struct query_flow_counter_out : command_output<query_flow_counter_out, 32> {
    static constexpr f<0x080, 64> packets{};
    static constexpr f<0x0c0, 64> octets{};
    using fields = field_list<status, syndrome, packets, octets>;
};
static_assert(well_formed<query_flow_counter_out>);

// Followed by num_of_mtt translation entries.
struct umem : structure<umem, 32> {
    static constexpr f<0x09b, 5> log_page_size{};
    static constexpr f<0x0a0, 32> page_offset{};
    static constexpr f<0x0c0, 64> num_of_mtt{};
    using fields = field_list<log_page_size, page_offset, num_of_mtt>;
};
static_assert(well_formed<umem>);

struct create_umem_in : command_input<create_umem_in, 48> {
    static constexpr part<0x080, prm::umem> umem{};
    using fields = field_list<opcode, uid, op_mod, umem>;
};
static_assert(well_formed<create_umem_in>);

struct create_umem_out : command_output<create_umem_out, 16> {
    static constexpr f<0x048, 24> umem_id{};
    using fields = field_list<status, syndrome, umem_id>;
};
static_assert(well_formed<create_umem_out>);

struct destroy_umem_in : command_input<destroy_umem_in, 16> {
    static constexpr f<0x048, 24> umem_id{};
    using fields = field_list<opcode, uid, op_mod, umem_id>;
};
static_assert(well_formed<destroy_umem_in>);

} // namespace ucxl::prm
