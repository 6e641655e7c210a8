// The segments of a UMR WQE, which changes a memory key:
//
//     control (imm = key) | UMR control | key context (mkc) | entries, inline or behind a pointer | BSF
//
// Entries are KLMs or KSMs (mkey.h), or one repeat block: a header and its entries. The device walks them repeat_count
// times, and each entry advances by its stride.
#pragma once

#include "mkey.h"
#include "wqe.h"

namespace ucxl::prm
{

// The fields of the key context that the UMR writes; the others keep their value.
enum class umr_mask : std::uint64_t {
    len                    = 1ULL << 0,
    page_size              = 1ULL << 1,
    start_addr             = 1ULL << 6,
    pd                     = 1ULL << 7,
    en_rinval              = 1ULL << 8,
    sig_err                = 1ULL << 9,
    bsf_enable             = 1ULL << 12,
    key                    = 1ULL << 13,
    qpn                    = 1ULL << 14,
    local_read             = 1ULL << 17,
    local_write            = 1ULL << 18,
    remote_read            = 1ULL << 19,
    remote_write           = 1ULL << 20,
    atomic                 = 1ULL << 21,
    small_fence            = 1ULL << 23,
    relaxed_ordering_write = 1ULL << 25,
    free                   = 1ULL << 29,
    relaxed_ordering_read  = 1ULL << 47,
};

template <>
struct value_names<umr_mask>
    : any_of<umr_mask::len, umr_mask::page_size, umr_mask::start_addr, umr_mask::pd, umr_mask::en_rinval,
             umr_mask::sig_err, umr_mask::bsf_enable, umr_mask::key, umr_mask::qpn, umr_mask::local_read,
             umr_mask::local_write, umr_mask::remote_read, umr_mask::remote_write, umr_mask::atomic,
             umr_mask::small_fence, umr_mask::relaxed_ordering_write, umr_mask::free, umr_mask::relaxed_ordering_read> {
};

// With translation_offset_en the second 16-bit count is the offset of the entries in the list, otherwise the length of
// the BSF.
struct wqe_umr_control_segment : structure<wqe_umr_control_segment, 48> {
    static constexpr f<0x000, 1> inline_entries{};
    static constexpr f<0x002, 1> check_free{};
    static constexpr f<0x003, 1> translation_offset_en{};
    static constexpr f<0x004, 1> check_qpn{};
    static constexpr f<0x020, 16> klm_octowords{};
    static constexpr f<0x030, 16> translation_offset{};
    static constexpr alt<0x030, 16> bsf_octowords{};
    static constexpr f<0x040, 64, umr_mask> mkey_mask{};
    using fields = field_list<inline_entries, check_free, translation_offset_en, check_qpn, klm_octowords,
                              translation_offset, bsf_octowords, mkey_mask>;
};
static_assert(well_formed<wqe_umr_control_segment>);

// The address of entries that are not inline.
struct wqe_pointer_segment : structure<wqe_pointer_segment, 16> {
    static constexpr f<0x020, 32> mkey{};
    static constexpr f<0x040, 64> addr{};
    using fields = field_list<mkey, addr>;
};
static_assert(well_formed<wqe_pointer_segment>);

inline constexpr std::uint32_t repeat_block_op = 0x400;

// byte_count: of one turn over all entries.
struct repeat_block_header : structure<repeat_block_header, 16> {
    static constexpr f<0x000, 32> byte_count{};
    static constexpr f<0x020, 32> op{};
    static constexpr f<0x040, 32> repeat_count{};
    static constexpr f<0x070, 16> num_ent{};
    using fields = field_list<byte_count, op, repeat_count, num_ent>;
};
static_assert(well_formed<repeat_block_header>);

struct repeat_block_entry : structure<repeat_block_entry, 16> {
    static constexpr f<0x000, 16> stride{};
    static constexpr f<0x010, 16> byte_count{};
    static constexpr f<0x020, 32> mkey{};
    static constexpr f<0x040, 64> va{};
    using fields = field_list<stride, byte_count, mkey, va>;
};
static_assert(well_formed<repeat_block_entry>);

// The block signature format, not interpreted; its size is in bsf_octowords.
struct bsf : structure<bsf, 64> {
    static constexpr bytes<0x000, 64> opaque{};
    using fields = field_list<opaque>;
};
static_assert(well_formed<bsf>);

} // namespace ucxl::prm
