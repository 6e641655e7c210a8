// Event queues: context, commands, and the 64-byte event entry.
#pragma once

#include "command.h"

namespace ucxl::prm
{

struct eqc : structure<eqc, 64> {
    static constexpr f<0x000, 4> status{};
    static constexpr f<0x00d, 1> ec{};
    static constexpr f<0x00e, 1> oi{};
    static constexpr f<0x014, 4> st{};
    static constexpr f<0x054, 6> page_offset{};
    static constexpr f<0x063, 5> log_eq_size{};
    static constexpr f<0x068, 24> uar_page{};
    static constexpr f<0x0b4, 12> intr{};
    static constexpr f<0x0c3, 5> log_page_size{};
    static constexpr f<0x148, 24> consumer_counter{};
    static constexpr f<0x168, 24> producer_counter{};
    using fields = field_list<status, ec, oi, st, page_offset, log_eq_size, uar_page, intr, log_page_size,
                              consumer_counter, producer_counter>;
};
static_assert(well_formed<eqc>);

struct create_eq_in : command_input<create_eq_in, 272> {
    static constexpr f<0x058, 8> input_eqn{};
    static constexpr part<0x080, prm::eqc> eqc{};
    static constexpr f<0x280, 64> e_mtt_pointer{};
    static constexpr numbers<0x2c0, 64, 4> event_bitmask{};
    using fields = field_list<opcode, uid, op_mod, input_eqn, eqc, e_mtt_pointer, event_bitmask>;
};
static_assert(well_formed<create_eq_in>);

struct create_eq_out : command_output<create_eq_out, 16> {
    static constexpr f<0x058, 8> eqn{};
    using fields = field_list<status, syndrome, eqn>;
};
static_assert(well_formed<create_eq_out>);

struct destroy_eq_in : command_input<destroy_eq_in, 16> {
    static constexpr f<0x058, 8> eqn{};
    using fields = field_list<opcode, uid, op_mod, eqn>;
};
static_assert(well_formed<destroy_eq_in>);

enum class event_type : std::uint8_t {
    completion            = 0x00,
    path_migrated         = 0x01,
    comm_established      = 0x02,
    send_queue_drained    = 0x03,
    cq_error              = 0x04,
    wq_catastrophic_error = 0x05,
    path_migration_failed = 0x07,
    local_catastrophic    = 0x08,
    port_state_change     = 0x09,
    command_done          = 0x0a,
    page_request          = 0x0b,
    page_fault            = 0x0c,
    wq_invalid_request    = 0x10,
    wq_access_error       = 0x11,
    srq_catastrophic      = 0x12,
    srq_last_wqe          = 0x13,
    srq_limit_reached     = 0x14,
    gpio                  = 0x15,
    dct_drained           = 0x1c,
    dct_key_violation     = 0x1d,
    object_change         = 0x27,
};

template <>
struct value_names<event_type>
    : one_of<event_type::completion, event_type::path_migrated, event_type::comm_established,
             event_type::send_queue_drained, event_type::cq_error, event_type::wq_catastrophic_error,
             event_type::path_migration_failed, event_type::local_catastrophic, event_type::port_state_change,
             event_type::command_done, event_type::page_request, event_type::page_fault, event_type::wq_invalid_request,
             event_type::wq_access_error, event_type::srq_catastrophic, event_type::srq_last_wqe,
             event_type::srq_limit_reached, event_type::gpio, event_type::dct_drained, event_type::dct_key_violation,
             event_type::object_change> {
};

// The subtypes of port_state_change.
enum class port_change : std::uint8_t {
    down              = 1,
    active            = 4,
    initialized       = 5,
    lid               = 6,
    pkey              = 7,
    guid              = 8,
    client_reregister = 9,
};

template <>
struct value_names<port_change>
    : one_of<port_change::down, port_change::active, port_change::initialized, port_change::lid, port_change::pkey,
             port_change::guid, port_change::client_reregister> {
};

// The syndrome of cq_error.
enum class cq_error_reason : std::uint8_t {
    overrun          = 1,
    access_violation = 2,
};

template <>
struct value_names<cq_error_reason> : one_of<cq_error_reason::overrun, cq_error_reason::access_violation> {
};

// An event and its subtype as one number. The reason of a cq_error takes the place of the subtype.
constexpr std::uint32_t event_code(event_type type)
{
    return static_cast<std::uint32_t>(type);
}

constexpr std::uint32_t event_code(event_type type, port_change subtype)
{
    return static_cast<std::uint32_t>(type) | static_cast<std::uint32_t>(subtype) << 8;
}

constexpr std::uint32_t event_code(event_type type, cq_error_reason reason)
{
    return static_cast<std::uint32_t>(type) | static_cast<std::uint32_t>(reason) << 8;
}

constexpr event_type type_of_event(std::uint32_t code)
{
    return static_cast<event_type>(code & 0xff);
}

constexpr std::uint8_t subtype_of_event(std::uint32_t code)
{
    return static_cast<std::uint8_t>(code >> 8 & 0xff);
}

// event_data is one of the structures below, by event_type.
struct eqe : structure<eqe, 64> {
    static constexpr f<0x008, 8, prm::event_type> event_type{};
    static constexpr f<0x018, 8> event_sub_type{};
    static constexpr bytes<0x100, 28> event_data{};
    static constexpr f<0x1f0, 8> signature{};
    static constexpr f<0x1ff, 1> owner{};
    using fields = field_list<event_type, event_sub_type, event_data, signature, owner>;
};
static_assert(well_formed<eqe>);

struct event_completion : structure<event_completion, 28> {
    static constexpr f<0x0c8, 24> cqn{};
    using fields = field_list<cqn>;
};
static_assert(well_formed<event_completion>);

struct event_cq_error : structure<event_cq_error, 28> {
    static constexpr f<0x008, 24> cqn{};
    static constexpr f<0x058, 8> syndrome{};
    using fields = field_list<cqn, syndrome>;
};
static_assert(well_formed<event_cq_error>);

// The data of events of queue pairs and shared receive queues.
struct event_qp_srq : structure<event_qp_srq, 28> {
    static constexpr f<0x0c0, 8> type{};
    static constexpr f<0x0c8, 24> qp_srq_n{};
    using fields = field_list<type, qp_srq_n>;
};
static_assert(well_formed<event_qp_srq>);

// The data of the events dct_drained and dct_key_violation.
struct event_dct : structure<event_dct, 28> {
    static constexpr f<0x0c8, 24> dctn{};
    using fields = field_list<dctn>;
};
static_assert(well_formed<event_dct>);

struct event_port_change : structure<event_port_change, 28> {
    static constexpr f<0x040, 4> port_num{};
    using fields = field_list<port_num>;
};
static_assert(well_formed<event_port_change>);

} // namespace ucxl::prm
