// Completion queues: context and commands.
#pragma once

#include "command.h"

namespace ucxl::prm
{

enum class cqe_size : std::uint8_t {
    bytes_64         = 0,
    bytes_128        = 1,
    bytes_128_padded = 2, // 64 bytes used
};

template <>
struct value_names<cqe_size> : one_of<cqe_size::bytes_64, cqe_size::bytes_128, cqe_size::bytes_128_padded> {
};

enum class queue_status : std::uint8_t {
    ok            = 0x0,
    overflow      = 0x9,
    write_failure = 0xa,
};

template <>
struct value_names<queue_status> : one_of<queue_status::ok, queue_status::overflow, queue_status::write_failure> {
};

enum class queue_arm_state : std::uint8_t {
    solicited_armed = 0x6,
    armed           = 0x9,
    fired           = 0xa,
};

template <>
struct value_names<queue_arm_state>
    : one_of<queue_arm_state::solicited_armed, queue_arm_state::armed, queue_arm_state::fired> {
};

struct cqc : structure<cqc, 64> {
    static constexpr f<0x000, 4, queue_status> status{};
    static constexpr f<0x004, 1> as_notify{};
    static constexpr f<0x005, 1> initiator_src_dct{};
    static constexpr f<0x006, 1> dbr_umem_valid{};
    static constexpr f<0x008, 3, cqe_size> cqe_sz{};
    static constexpr f<0x00b, 1> cc{};
    static constexpr f<0x00d, 1> scqe_break_moderation_en{};
    static constexpr f<0x00e, 1> oi{};
    static constexpr f<0x00f, 2> cq_period_mode{};
    static constexpr f<0x011, 1> cqe_compression_en{};
    static constexpr f<0x012, 2> mini_cqe_res_format{};
    static constexpr f<0x014, 4, queue_arm_state> st{};
    static constexpr f<0x019, 7> cqe_comp_layout{};
    static constexpr f<0x020, 32> dbr_umem_id{};
    static constexpr f<0x054, 6> page_offset{};
    static constexpr f<0x05c, 2> mini_cqe_res_format_ext{};
    static constexpr f<0x05e, 2> cq_timestamp_format{};
    static constexpr f<0x063, 5> log_cq_size{};
    static constexpr f<0x068, 24> uar_page{};
    static constexpr f<0x084, 12> cq_period{};
    static constexpr f<0x090, 16> cq_max_count{};
    static constexpr f<0x0b8, 8> c_eqn{};
    static constexpr f<0x0c3, 5> log_page_size{};
    static constexpr f<0x108, 24> last_notified_index{};
    static constexpr f<0x128, 24> last_solicit_index{};
    static constexpr f<0x148, 24> consumer_counter{};
    static constexpr f<0x168, 24> producer_counter{};
    static constexpr f<0x180, 12> local_partition_id{};
    static constexpr f<0x18c, 20> process_id{};
    static constexpr f<0x1b0, 16> thread_id{};
    static constexpr f<0x1c0, 64> dbr_addr{};
    using fields =
        field_list<status, as_notify, initiator_src_dct, dbr_umem_valid, cqe_sz, cc, scqe_break_moderation_en, oi,
                   cq_period_mode, cqe_compression_en, mini_cqe_res_format, st, cqe_comp_layout, dbr_umem_id,
                   page_offset, mini_cqe_res_format_ext, cq_timestamp_format, log_cq_size, uar_page, cq_period,
                   cq_max_count, c_eqn, log_page_size, last_notified_index, last_solicit_index, consumer_counter,
                   producer_counter, local_partition_id, process_id, thread_id, dbr_addr>;
};
static_assert(well_formed<cqc>);

struct create_cq_in : command_input<create_cq_in, 272> {
    static constexpr f<0x048, 24> input_cqn{};
    static constexpr part<0x080, prm::cqc> cqc{};
    static constexpr f<0x280, 64> cq_umem_offset{};
    static constexpr f<0x2c0, 32> cq_umem_id{};
    static constexpr f<0x2e0, 1> cq_umem_valid{};
    using fields = field_list<opcode, uid, op_mod, input_cqn, cqc, cq_umem_offset, cq_umem_id, cq_umem_valid>;
};
static_assert(well_formed<create_cq_in>);

struct create_cq_out : command_output<create_cq_out, 16> {
    static constexpr f<0x048, 24> cqn{};
    using fields = field_list<status, syndrome, cqn>;
};
static_assert(well_formed<create_cq_out>);

// modify_field_select of modify_cq with op_mod 0; op_mod 1 resizes.
enum class cq_modify : std::uint32_t {
    cq_period      = 1U << 0,
    cq_max_count   = 1U << 1,
    oi             = 1U << 2,
    c_eqn          = 1U << 3,
    cq_period_mode = 1U << 4,
    status         = 1U << 5,
};

template <>
struct value_names<cq_modify> : any_of<cq_modify::cq_period, cq_modify::cq_max_count, cq_modify::oi, cq_modify::c_eqn,
                                       cq_modify::cq_period_mode, cq_modify::status> {
};

struct modify_cq_in : command_input<modify_cq_in, 272> {
    static constexpr f<0x048, 24> cqn{};
    static constexpr f<0x060, 32, cq_modify> modify_field_select{};
    static constexpr part<0x080, prm::cqc> cqc{};
    static constexpr f<0x280, 64> cq_umem_offset{};
    static constexpr f<0x2c0, 32> cq_umem_id{};
    static constexpr f<0x2e0, 1> cq_umem_valid{};
    using fields =
        field_list<opcode, uid, op_mod, cqn, modify_field_select, cqc, cq_umem_offset, cq_umem_id, cq_umem_valid>;
};
static_assert(well_formed<modify_cq_in>);

// Query and destroy.
struct plain_cq_in : command_input<plain_cq_in, 16> {
    static constexpr f<0x048, 24> cqn{};
    using fields = field_list<opcode, uid, op_mod, cqn>;
};
static_assert(well_formed<plain_cq_in>);

struct query_cq_out : command_output<query_cq_out, 272> {
    static constexpr part<0x080, prm::cqc> cqc{};
    using fields = field_list<status, syndrome, cqc>;
};
static_assert(well_formed<query_cq_out>);

} // namespace ucxl::prm
