// Memory keys: the key context, the translation entries of an indirect key, and the commands.
//
// A command and a UMR WQE have the same 64 bytes of context. Its access mode is split in two fields; use access_mode()
// and set_access_mode(). A key is index << 8 | variant, and the variant is mkey_7_0.
#pragma once

#include "command.h"

namespace ucxl::prm
{

enum class mkey_access_mode : std::uint8_t {
    physical_address = 0,
    mtt              = 1,
    klm              = 2, // entries of any length
    ksm              = 3, // entries of the same length, 2^log_entity_size
    software_icm     = 4,
    memic            = 5,
    crossing_vhca    = 6, // refers to a key of another function of the device
};

template <>
struct value_names<mkey_access_mode>
    : one_of<mkey_access_mode::physical_address, mkey_access_mode::mtt, mkey_access_mode::klm, mkey_access_mode::ksm,
             mkey_access_mode::software_icm, mkey_access_mode::memic, mkey_access_mode::crossing_vhca> {
};

// The QP number of a key that any QP of the protection domain may use.
inline constexpr std::uint32_t any_qpn = 0xffffff;

struct mkc : structure<mkc, 64> {
    static constexpr f<0x001, 1> free{};
    static constexpr f<0x003, 3> access_mode_4_2{};
    static constexpr f<0x006, 1> alter_pd_to_vhca_id{};
    static constexpr f<0x007, 1> crossed_side_mkey{};
    static constexpr f<0x00d, 1> relaxed_ordering_write{};
    static constexpr f<0x00f, 1> small_fence_on_rdma_read_response{};
    static constexpr f<0x010, 1> umr_en{};
    static constexpr f<0x011, 1> a{};
    static constexpr f<0x012, 1> rw{};
    static constexpr f<0x013, 1> rr{};
    static constexpr f<0x014, 1> lw{};
    static constexpr f<0x015, 1> lr{};
    static constexpr f<0x016, 2> access_mode_1_0{};
    static constexpr f<0x019, 1> tunneled_atomic{};
    static constexpr f<0x01a, 2> ma_translation_mode{};
    static constexpr f<0x020, 24> qpn{};
    static constexpr f<0x038, 8> mkey_7_0{};
    static constexpr f<0x048, 24> pasid{};
    static constexpr f<0x060, 1> length64{};
    static constexpr f<0x061, 1> bsf_en{};
    static constexpr f<0x062, 1> sync_umr{};
    static constexpr f<0x065, 1> expected_sigerr_count{};
    static constexpr f<0x067, 1> en_rinval{};
    static constexpr f<0x068, 24> pd{};
    static constexpr f<0x080, 64> start_addr{};
    static constexpr f<0x0c0, 64> len{};
    static constexpr f<0x100, 32> bsf_octword_size{};
    static constexpr f<0x180, 16> crossing_target_vhca_id{};
    static constexpr f<0x1a0, 32> translations_octword_size{};
    static constexpr alt<0x1a0, 32> crossing_target_mkey{};
    static constexpr f<0x1d9, 1> relaxed_ordering_read{};
    static constexpr f<0x1db, 5> log_entity_size{};
    static constexpr f<0x1e3, 2> crypto_en{};
    using fields =
        field_list<free, access_mode_4_2, alter_pd_to_vhca_id, crossed_side_mkey, relaxed_ordering_write,
                   small_fence_on_rdma_read_response, umr_en, a, rw, rr, lw, lr, access_mode_1_0, tunneled_atomic,
                   ma_translation_mode, qpn, mkey_7_0, pasid, length64, bsf_en, sync_umr, expected_sigerr_count,
                   en_rinval, pd, start_addr, len, bsf_octword_size, crossing_target_vhca_id, translations_octword_size,
                   crossing_target_mkey, relaxed_ordering_read, log_entity_size, crypto_en>;
};
static_assert(well_formed<mkc>);

constexpr mkey_access_mode access_mode(const_view<mkc> context)
{
    const unsigned high = context.get(mkc::access_mode_4_2);
    return static_cast<mkey_access_mode>(high << 2 | context.get(mkc::access_mode_1_0));
}

constexpr void set_access_mode(view<mkc> context, mkey_access_mode mode)
{
    const auto bits = std::to_underlying(mode);
    (void)context.set(mkc::access_mode_1_0, bits & 3U);
    (void)context.set(mkc::access_mode_4_2, bits >> 2 & 7U);
}

// A piece of memory of any length, up to 2 GB; a byte count of 0 means 2^32 where the device supports it.
struct klm : structure<klm, 16> {
    static constexpr f<0x000, 32> byte_count{};
    static constexpr f<0x020, 32> mkey{};
    static constexpr f<0x040, 64> address{};
    using fields = field_list<byte_count, mkey, address>;
};
static_assert(well_formed<klm>);

// A piece of memory; all pieces of the list have the same length.
struct ksm : structure<ksm, 16> {
    static constexpr f<0x020, 32> mkey{};
    static constexpr f<0x040, 64> address{};
    using fields = field_list<mkey, address>;
};
static_assert(well_formed<ksm>);

// A page: bits 63..3 of its address and the two access bits.
struct mtt : structure<mtt, 8> {
    static constexpr f<0x000, 32> ptag_63_32{};
    static constexpr f<0x020, 24> ptag_31_8{};
    static constexpr f<0x03e, 1> wr_en{};
    static constexpr f<0x03f, 1> rd_en{};
    using fields = field_list<ptag_63_32, ptag_31_8, wr_en, rd_en>;
};
static_assert(well_formed<mtt>);

// Followed by translations_octword_actual_size 16-byte translation entries when mkey_umem_valid is 0.
struct create_mkey_in : command_input<create_mkey_in, 272> {
    static constexpr f<0x048, 24> input_mkey_index{};
    static constexpr f<0x060, 1> pg_access{};
    static constexpr f<0x061, 1> mkey_umem_valid{};
    static constexpr f<0x062, 1> cmd_on_behalf{};
    static constexpr f<0x070, 16> function_id{};
    static constexpr part<0x080, mkc> memory_key{};
    static constexpr f<0x280, 64> e_mtt_pointer{};
    static constexpr f<0x2c0, 64> e_bsf_pointer{};
    static constexpr f<0x300, 32> translations_octword_actual_size{};
    static constexpr f<0x320, 32> mkey_umem_id{};
    static constexpr f<0x340, 64> mkey_umem_offset{};
    static constexpr f<0x380, 32> bsf_octword_actual_size{};
    using fields = field_list<opcode, uid, op_mod, input_mkey_index, pg_access, mkey_umem_valid, cmd_on_behalf,
                              function_id, memory_key, e_mtt_pointer, e_bsf_pointer, translations_octword_actual_size,
                              mkey_umem_id, mkey_umem_offset, bsf_octword_actual_size>;
};
static_assert(well_formed<create_mkey_in>);

struct create_mkey_out : command_output<create_mkey_out, 16> {
    static constexpr f<0x048, 24> mkey_index{};
    using fields = field_list<status, syndrome, mkey_index>;
};
static_assert(well_formed<create_mkey_out>);

struct query_mkey_in : command_input<query_mkey_in, 16> {
    static constexpr f<0x048, 24> mkey_index{};
    static constexpr f<0x060, 1> pg_access{};
    using fields = field_list<opcode, uid, op_mod, mkey_index, pg_access>;
};
static_assert(well_formed<query_mkey_in>);

// Followed by the first translation entries of the key.
struct query_mkey_out : command_output<query_mkey_out, 272> {
    static constexpr part<0x080, mkc> memory_key{};
    using fields = field_list<status, syndrome, memory_key>;
};
static_assert(well_formed<query_mkey_out>);

struct destroy_mkey_in : command_input<destroy_mkey_in, 16> {
    static constexpr f<0x048, 24> mkey_index{};
    using fields = field_list<opcode, uid, op_mod, mkey_index>;
};
static_assert(well_formed<destroy_mkey_in>);

// The reserved keys.
struct query_special_contexts_out : command_output<query_special_contexts_out, 32> {
    static constexpr f<0x040, 32> dump_fill_mkey{};
    static constexpr f<0x060, 32> resd_lkey{};
    static constexpr f<0x080, 32> null_mkey{};
    static constexpr f<0x0a0, 32> terminate_scatter_list_mkey{};
    static constexpr f<0x0c0, 32> repeated_mkey{};
    using fields =
        field_list<status, syndrome, dump_fill_mkey, resd_lkey, null_mkey, terminate_scatter_list_mkey, repeated_mkey>;
};
static_assert(well_formed<query_special_contexts_out>);

// The signature state of up to four domains, for keys with a block signature format.
struct create_psv_in : command_input<create_psv_in, 16> {
    static constexpr f<0x040, 4> num_psv{};
    static constexpr f<0x048, 24> pd{};
    using fields = field_list<opcode, uid, op_mod, num_psv, pd>;
};
static_assert(well_formed<create_psv_in>);

struct create_psv_out : command_output<create_psv_out, 32> {
    static constexpr f<0x088, 24> psv0_index{};
    static constexpr f<0x0a8, 24> psv1_index{};
    static constexpr f<0x0c8, 24> psv2_index{};
    static constexpr f<0x0e8, 24> psv3_index{};
    using fields = field_list<status, syndrome, psv0_index, psv1_index, psv2_index, psv3_index>;
};
static_assert(well_formed<create_psv_out>);

struct destroy_psv_in : command_input<destroy_psv_in, 16> {
    static constexpr f<0x048, 24> psvn{};
    using fields = field_list<opcode, uid, op_mod, psvn>;
};
static_assert(well_formed<destroy_psv_in>);

} // namespace ucxl::prm
