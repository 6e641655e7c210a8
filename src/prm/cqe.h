// Completion queue entries (CQEs). The last byte says how to read the other 63. A 128-byte entry has them in its second
// half.
//
// A consumer owns entry n when `owner` equals bit log_cq_size of its consumer counter and the opcode is not invalid.
// The device writes the byte with `opcode`, `format` and `owner` last.
#pragma once

#include "names.h"
#include "view.h"
#include "wqe.h"

namespace ucxl::prm
{

enum class cqe_opcode : std::uint8_t {
    requester           = 0,
    responder_write_imm = 1,
    responder_send      = 2,
    responder_send_imm  = 3,
    responder_send_inv  = 4,
    resize_cq           = 5,
    no_packet           = 6,
    signature_error     = 12,
    requester_error     = 13,
    responder_error     = 14,
    invalid             = 15,
};

template <>
struct value_names<cqe_opcode>
    : one_of<cqe_opcode::requester, cqe_opcode::responder_write_imm, cqe_opcode::responder_send,
             cqe_opcode::responder_send_imm, cqe_opcode::responder_send_inv, cqe_opcode::resize_cq,
             cqe_opcode::no_packet, cqe_opcode::signature_error, cqe_opcode::requester_error,
             cqe_opcode::responder_error, cqe_opcode::invalid> {
};

// Whether the CQE holds received or read data: in its first 32 bytes, or in the first 64 of 128.
enum class cqe_format : std::uint8_t {
    no_inline  = 0,
    inline_32  = 1,
    inline_64  = 2,
    compressed = 3, // an array of mini CQEs
};

template <>
struct value_names<cqe_format>
    : one_of<cqe_format::no_inline, cqe_format::inline_32, cqe_format::inline_64, cqe_format::compressed> {
};

enum class cqe_syndrome : std::uint8_t {
    local_length             = 0x01,
    local_qp_operation       = 0x02,
    local_protection         = 0x04,
    flushed                  = 0x05,
    memory_window_bind       = 0x06,
    bad_response             = 0x10,
    local_access             = 0x11,
    remote_invalid_request   = 0x12,
    remote_access            = 0x13,
    remote_operation         = 0x14,
    transport_retry_exceeded = 0x15,
    rnr_retry_exceeded       = 0x16,
    remote_aborted           = 0x22,
};

template <>
struct value_names<cqe_syndrome>
    : one_of<cqe_syndrome::local_length, cqe_syndrome::local_qp_operation, cqe_syndrome::local_protection,
             cqe_syndrome::flushed, cqe_syndrome::memory_window_bind, cqe_syndrome::bad_response,
             cqe_syndrome::local_access, cqe_syndrome::remote_invalid_request, cqe_syndrome::remote_access,
             cqe_syndrome::remote_operation, cqe_syndrome::transport_retry_exceeded, cqe_syndrome::rnr_retry_exceeded,
             cqe_syndrome::remote_aborted> {
};

// Requester: sop_drop_qpn is the opcode of the WQE and the queue pair, wqe_counter the index of its first block.
// Responder: imm_inval_pkey is the immediate value or invalidated key; the source of a datagram is in slid .. src_qpn.
struct cqe64 : structure<cqe64, 64> {
    static constexpr f<0x010, 16> wqe_id{};
    static constexpr f<0x088, 8> ml_path{};
    static constexpr f<0x0b0, 16> slid{};
    static constexpr f<0x0c2, 2> grh{};
    static constexpr f<0x0c4, 4> sl{};
    static constexpr f<0x0c8, 24> src_qpn{};
    static constexpr f<0x0e0, 8> hds_ip_ext{};
    static constexpr f<0x0e8, 8> l4_hdr_type_etc{};
    static constexpr f<0x0f0, 16> vlan_info{};
    static constexpr f<0x108, 24> srqn_uidx{};
    static constexpr f<0x120, 32> imm_inval_pkey{};
    static constexpr f<0x140, 8> app{};
    static constexpr f<0x148, 8> app_op{};
    static constexpr f<0x150, 16> app_info{};
    static constexpr f<0x160, 32> byte_cnt{};
    static constexpr f<0x180, 64> timestamp{};
    static constexpr f<0x1c0, 8, wqe_opcode> sop_opcode{};
    static constexpr f<0x1c8, 24> qpn{};
    static constexpr f<0x1e0, 16> wqe_counter{};
    static constexpr f<0x1f0, 8> signature{};
    static constexpr f<0x1f8, 4, cqe_opcode> opcode{};
    static constexpr f<0x1fc, 2, cqe_format> format{};
    static constexpr f<0x1fe, 1> solicited{};
    static constexpr f<0x1ff, 1> owner{};
    using fields = field_list<wqe_id, ml_path, slid, grh, sl, src_qpn, hds_ip_ext, l4_hdr_type_etc, vlan_info,
                              srqn_uidx, imm_inval_pkey, app, app_op, app_info, byte_cnt, timestamp, sop_opcode, qpn,
                              wqe_counter, signature, opcode, format, solicited, owner>;
};
static_assert(well_formed<cqe64>);

// The same bytes when the opcode is an error.
struct cqe64_error : structure<cqe64_error, 64> {
    static constexpr f<0x108, 24> srqn{};
    static constexpr f<0x1a0, 8> hw_error_syndrome{};
    static constexpr f<0x1a8, 8> hw_syndrome_type{};
    static constexpr f<0x1b0, 8> vendor_error_syndrome{};
    static constexpr f<0x1b8, 8, cqe_syndrome> syndrome{};
    static constexpr f<0x1c0, 8, wqe_opcode> sop_opcode{};
    static constexpr f<0x1c8, 24> qpn{};
    static constexpr f<0x1e0, 16> wqe_counter{};
    static constexpr f<0x1f0, 8> signature{};
    static constexpr f<0x1f8, 4, cqe_opcode> opcode{};
    static constexpr f<0x1fc, 2, cqe_format> format{};
    static constexpr f<0x1fe, 1> solicited{};
    static constexpr f<0x1ff, 1> owner{};
    using fields = field_list<srqn, hw_error_syndrome, hw_syndrome_type, vendor_error_syndrome, syndrome, sop_opcode,
                              qpn, wqe_counter, signature, opcode, format, solicited, owner>;
};
static_assert(well_formed<cqe64_error>);

struct cqe128 : structure<cqe128, 128> {
    static constexpr bytes<0x000, 64> data{};
    static constexpr part<0x200, cqe64> cqe{};
    using fields = field_list<data, cqe>;
};
static_assert(well_formed<cqe128>);

// An entry of a compressed CQE: what differs between neighbours. The rest is in the title CQE before it.
struct mini_cqe : structure<mini_cqe, 8> {
    static constexpr f<0x000, 32> rx_hash_result{};
    static constexpr alt<0x000, 16> wqe_counter{};
    static constexpr alt<0x010, 8, wqe_opcode> sop_opcode{};
    static constexpr f<0x020, 32> byte_cnt{};
    using fields = field_list<rx_hash_result, wqe_counter, sop_opcode, byte_cnt>;
};
static_assert(well_formed<mini_cqe>);

inline constexpr unsigned max_mini_cqes = 7;

struct compressed_cqe : structure<compressed_cqe, 64> {
    static constexpr part<0x000, mini_cqe, max_mini_cqes> mini{};
    static constexpr f<0x1f8, 4, cqe_opcode> opcode{};
    static constexpr f<0x1fc, 2, cqe_format> format{};
    static constexpr f<0x1fe, 1> solicited{};
    static constexpr f<0x1ff, 1> owner{};
    using fields = field_list<mini, opcode, format, solicited, owner>;
};
static_assert(well_formed<compressed_cqe>);

} // namespace ucxl::prm
