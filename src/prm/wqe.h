// The segments of work queue entries (WQEs). A send WQE is a control segment and the segments of its opcode, in 16-byte
// units. The segments of a UMR are in umr.h. send_wqe.h parses whole WQEs.
//
//     control | address vector (UD, DC) | remote address | atomic | data or inline data ...
#pragma once

#include "names.h"
#include "view.h"

namespace ucxl::prm
{

inline constexpr std::size_t wqe_unit_bytes  = 16; // the unit of `ds` in the control segment
inline constexpr std::size_t wqe_block_bytes = 64; // the unit of the producer counter
inline constexpr unsigned max_wqe_units      = 63;

enum class wqe_opcode : std::uint8_t {
    nop               = 0x00,
    send_invalidate   = 0x01,
    rdma_write        = 0x08,
    rdma_write_imm    = 0x09,
    send              = 0x0a,
    send_imm          = 0x0b,
    tso               = 0x0e,
    wait              = 0x0f,
    rdma_read         = 0x10,
    atomic_cs         = 0x11,
    atomic_fa         = 0x12,
    atomic_masked_cs  = 0x14,
    atomic_masked_fa  = 0x15,
    receive_enable    = 0x16,
    send_enable       = 0x17,
    fmr               = 0x19,
    local_invalidate  = 0x1b,
    config_command    = 0x1f,
    set_psv           = 0x20,
    get_psv           = 0x21,
    check_psv         = 0x22,
    dump              = 0x23,
    umr               = 0x25,
    tag_matching      = 0x28,
    flow_table_access = 0x2c,
    mmo               = 0x2f,
};

template <>
struct value_names<wqe_opcode>
    : one_of<wqe_opcode::nop, wqe_opcode::send_invalidate, wqe_opcode::rdma_write, wqe_opcode::rdma_write_imm,
             wqe_opcode::send, wqe_opcode::send_imm, wqe_opcode::tso, wqe_opcode::wait, wqe_opcode::rdma_read,
             wqe_opcode::atomic_cs, wqe_opcode::atomic_fa, wqe_opcode::atomic_masked_cs, wqe_opcode::atomic_masked_fa,
             wqe_opcode::receive_enable, wqe_opcode::send_enable, wqe_opcode::fmr, wqe_opcode::local_invalidate,
             wqe_opcode::config_command, wqe_opcode::set_psv, wqe_opcode::get_psv, wqe_opcode::check_psv,
             wqe_opcode::dump, wqe_opcode::umr, wqe_opcode::tag_matching, wqe_opcode::flow_table_access,
             wqe_opcode::mmo> {
};

constexpr bool is_atomic(wqe_opcode opcode)
{
    return opcode == wqe_opcode::atomic_cs || opcode == wqe_opcode::atomic_fa ||
           opcode == wqe_opcode::atomic_masked_cs || opcode == wqe_opcode::atomic_masked_fa;
}

// What this WQE waits for before it starts.
enum class wqe_fence : std::uint8_t {
    none            = 0,
    initiator_small = 1, // local invalidations and UMRs
    full            = 2, // reads and atomics have completed
    strong_ordering = 3,
    small_and_full  = 4,
};

template <>
struct value_names<wqe_fence> : one_of<wqe_fence::none, wqe_fence::initiator_small, wqe_fence::full,
                                       wqe_fence::strong_ordering, wqe_fence::small_and_full> {
};

// When a CQE is written.
enum class wqe_completion : std::uint8_t {
    on_error       = 0,
    on_first_error = 1,
    always         = 2,
    always_event   = 3,
};

template <>
struct value_names<wqe_completion> : one_of<wqe_completion::on_error, wqe_completion::on_first_error,
                                            wqe_completion::always, wqe_completion::always_event> {
};

// op_mod of atomics whose operands do not have 8 bytes: bit 3 set, and log2 of the size minus 2 below it.
inline constexpr std::uint8_t extended_atomic = 8;

struct wqe_control_segment : structure<wqe_control_segment, 16> {
    static constexpr f<0x000, 8> op_mod{};
    static constexpr f<0x008, 16> wqe_index{};
    static constexpr f<0x018, 8, wqe_opcode> opcode{};
    static constexpr f<0x020, 24> qpn{};
    static constexpr f<0x03a, 6> ds{};
    static constexpr f<0x040, 8> signature{};
    static constexpr f<0x048, 16> dci_stream_channel_id{};
    static constexpr f<0x058, 3, wqe_fence> fence{};
    static constexpr f<0x05c, 2, wqe_completion> completion{};
    static constexpr f<0x05e, 1> solicited{};
    static constexpr f<0x060, 32> imm{};
    using fields = field_list<op_mod, wqe_index, opcode, qpn, ds, signature, dci_stream_channel_id, fence, completion,
                              solicited, imm>;
};
static_assert(well_formed<wqe_control_segment>);

// imm is the immediate value, the key to invalidate, or the key that a UMR changes, in the byte order of the wire.

struct wqe_remote_address_segment : structure<wqe_remote_address_segment, 16> {
    static constexpr f<0x000, 64> raddr{};
    static constexpr f<0x040, 32> rkey{};
    using fields = field_list<raddr, rkey>;
};
static_assert(well_formed<wqe_remote_address_segment>);

// Operands are big-endian. The old value is in the byte order of the host when operands have 8 bytes and
// atomic_req_8b_endianness_mode is 1, otherwise big-endian.
struct wqe_atomic_segment : structure<wqe_atomic_segment, 16> {
    static constexpr f<0x000, 64> swap_add{};
    static constexpr f<0x040, 64> compare{};
    using fields = field_list<swap_add, compare>;
};
static_assert(well_formed<wqe_atomic_segment>);

// 64-bit masked compare and swap. A masked fetch and add of 64 bits uses wqe_masked_add_segment.
struct wqe_masked_swap_segment : structure<wqe_masked_swap_segment, 32> {
    static constexpr f<0x000, 64> swap{};
    static constexpr f<0x040, 64> compare{};
    static constexpr f<0x080, 64> swap_mask{};
    static constexpr f<0x0c0, 64> compare_mask{};
    using fields = field_list<swap, compare, swap_mask, compare_mask>;
};
static_assert(well_formed<wqe_masked_swap_segment>);

// A carry stops at a bit that is set in the boundary.
struct wqe_masked_add_segment : structure<wqe_masked_add_segment, 16> {
    static constexpr f<0x000, 64> add{};
    static constexpr f<0x040, 64> field_boundary{};
    using fields = field_list<add, field_boundary>;
};
static_assert(well_formed<wqe_masked_add_segment>);

struct wqe_masked_swap32_segment : structure<wqe_masked_swap32_segment, 16> {
    static constexpr f<0x000, 32> swap{};
    static constexpr f<0x020, 32> compare{};
    static constexpr f<0x040, 32> swap_mask{};
    static constexpr f<0x060, 32> compare_mask{};
    using fields = field_list<swap, compare, swap_mask, compare_mask>;
};
static_assert(well_formed<wqe_masked_swap32_segment>);

struct wqe_masked_add32_segment : structure<wqe_masked_add32_segment, 16> {
    static constexpr f<0x000, 32> add{};
    static constexpr f<0x020, 32> field_boundary{};
    using fields = field_list<add, field_boundary>;
};
static_assert(well_formed<wqe_masked_add32_segment>);

// The address vector of a datagram: its first 16 bytes when the device takes compact ones and `extended` is clear,
// otherwise all 48. The key is a Q_Key in the first half, or a DC key in both.
struct wqe_compact_address_vector : structure<wqe_compact_address_vector, 16> {
    static constexpr f<0x000, 64> dc_key{};
    static constexpr alt<0x000, 32> qkey{};
    static constexpr f<0x040, 1> extended{};
    static constexpr f<0x048, 24> destination_qpn{};
    static constexpr f<0x060, 4> stat_rate{};
    static constexpr f<0x064, 4> sl{};
    static constexpr f<0x068, 1> force_loopback{};
    static constexpr f<0x069, 7> mlid{};
    static constexpr f<0x070, 16> rlid{};
    using fields = field_list<dc_key, qkey, extended, destination_qpn, stat_rate, sl, force_loopback, mlid, rlid>;
};
static_assert(well_formed<wqe_compact_address_vector>);

struct wqe_address_vector : structure<wqe_address_vector, 48> {
    static constexpr part<0x000, wqe_compact_address_vector> compact{};
    static constexpr f<0x0a0, 48> rmac{};
    static constexpr f<0x0d0, 8> tclass{};
    static constexpr f<0x0d8, 8> hop_limit{};
    static constexpr f<0x0e1, 1> grh{};
    static constexpr f<0x0e4, 8> src_addr_index{};
    static constexpr f<0x0ec, 20> flow_label{};
    static constexpr bytes<0x100, 16> rgid{};
    using fields = field_list<compact, rmac, tclass, hop_limit, grh, src_addr_index, flow_label, rgid>;
};
static_assert(well_formed<wqe_address_vector>);

// The shared receive queue of an XRC send.
struct wqe_xrc_segment : structure<wqe_xrc_segment, 16> {
    static constexpr f<0x00, 32> xrc_srqn{};
    using fields = field_list<xrc_srqn>;
};
static_assert(well_formed<wqe_xrc_segment>);

// A gather or scatter entry. With `in_line` set the bytes themselves follow byte_count (wqe_inline_segment).
struct wqe_data_segment : structure<wqe_data_segment, 16> {
    static constexpr f<0x000, 1> in_line{};
    static constexpr f<0x001, 31> byte_count{};
    static constexpr f<0x020, 32> lkey{};
    static constexpr f<0x040, 64> addr{};
    using fields = field_list<in_line, byte_count, lkey, addr>;
};
static_assert(well_formed<wqe_data_segment>);

// The length of the inline bytes that follow; header and bytes are padded to 16 bytes.
struct wqe_inline_segment : structure<wqe_inline_segment, 4> {
    static constexpr f<0x000, 1> in_line{};
    static constexpr f<0x001, 31> byte_count{};
    using fields = field_list<in_line, byte_count>;
};
static_assert(well_formed<wqe_inline_segment>);

// The lkey that ends a receive entry with fewer segments than it has room for.
inline constexpr std::uint32_t invalid_lkey = 0x100;

// The beginning of every entry of a shared receive queue: the link to the next free entry.
struct wqe_srq_next_segment : structure<wqe_srq_next_segment, 16> {
    static constexpr f<0x010, 16> next_wqe_index{};
    static constexpr f<0x020, 8> signature{};
    using fields = field_list<next_wqe_index, signature>;
};
static_assert(well_formed<wqe_srq_next_segment>);

// Waits until a completion queue has produced that many entries, or enables a queue up to that index.
struct wqe_wait_segment : structure<wqe_wait_segment, 16> {
    static constexpr f<0x040, 32> producer_index{};
    static constexpr f<0x068, 24> qpn_cqn{};
    using fields = field_list<producer_index, qpn_cqn>;
};
static_assert(well_formed<wqe_wait_segment>);

struct wqe_set_psv_segment : structure<wqe_set_psv_segment, 16> {
    static constexpr f<0x000, 32> psv_index{};
    static constexpr f<0x020, 16> syndrome{};
    static constexpr f<0x040, 64> transient_signature{};
    using fields = field_list<psv_index, syndrome, transient_signature>;
};
static_assert(well_formed<wqe_set_psv_segment>);

struct wqe_get_psv_segment : structure<wqe_get_psv_segment, 48> {
    static constexpr f<0x098, 8> num_psv{};
    static constexpr f<0x0a0, 32> lkey{};
    static constexpr f<0x0c0, 64> va{};
    static constexpr numbers<0x100, 32, 4> psv_index{};
    using fields = field_list<num_psv, lkey, va, psv_index>;
};
static_assert(well_formed<wqe_get_psv_segment>);

// Data movement by the device itself (DMA): control, this, source and destination data segments.
struct wqe_mmo_metadata_segment : structure<wqe_mmo_metadata_segment, 16> {
    static constexpr f<0x000, 32> mmo_control{};
    static constexpr f<0x020, 32> local_key{};
    static constexpr f<0x040, 64> local_address{};
    using fields = field_list<mmo_control, local_key, local_address>;
};
static_assert(well_formed<wqe_mmo_metadata_segment>);

// The first 16 bytes after the control segment of an Ethernet send, so that a trace can name it.
struct wqe_ethernet_segment : structure<wqe_ethernet_segment, 16> {
    static constexpr f<0x020, 1> l4_checksum{};
    static constexpr f<0x021, 1> l3_checksum{};
    static constexpr f<0x030, 16> mss{};
    static constexpr f<0x060, 16> inline_header_bytes{};
    static constexpr f<0x070, 16> inline_header_start{};
    using fields = field_list<l4_checksum, l3_checksum, mss, inline_header_bytes, inline_header_start>;
};
static_assert(well_formed<wqe_ethernet_segment>);

} // namespace ucxl::prm
