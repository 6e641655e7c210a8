// Compares segments and CQEs with the structures of rdma-core's <infiniband/mlx5dv.h>: the sizes are equal, and each
// side reads what the other writes. Fields of mlx5dv.h are in the byte order of the device.
#include <gtest/gtest.h>

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <cstring>

#include "prm/cqe.h"
#include "prm/doorbell.h"
#include "prm/umr.h"
#include "prm/wqe.h"

namespace ucxl::prm
{
namespace
{

static_assert(sizeof(mlx5_wqe_ctrl_seg) == wqe_control_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_raddr_seg) == wqe_remote_address_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_atomic_seg) == wqe_atomic_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_data_seg) == wqe_data_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_inl_data_seg) == wqe_inline_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_av) == wqe_address_vector::size_bytes);
static_assert(sizeof(mlx5_wqe_srq_next_seg) == wqe_srq_next_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_umr_ctrl_seg) == wqe_umr_control_segment::size_bytes);
static_assert(sizeof(mlx5_wqe_mkey_context_seg) == mkc::size_bytes);
static_assert(sizeof(mlx5_wqe_umr_klm_seg) == klm::size_bytes);
static_assert(sizeof(mlx5_wqe_umr_repeat_block_seg) == repeat_block_header::size_bytes);
static_assert(sizeof(mlx5_wqe_umr_repeat_ent_seg) == repeat_block_entry::size_bytes);
static_assert(sizeof(mlx5_cqe64) == cqe64::size_bytes);
static_assert(sizeof(mlx5_err_cqe) == cqe64_error::size_bytes);

template <typename S, typename Theirs>
const_view<S> as(const Theirs& theirs)
{
    static_assert(sizeof(Theirs) >= S::size_bytes);
    return *const_view<S>::over(std::as_bytes(std::span(&theirs, 1)));
}

template <typename Theirs, typename S>
Theirs back(const storage<S>& ours)
{
    static_assert(sizeof(Theirs) == S::size_bytes);
    Theirs theirs;
    std::memcpy(&theirs, ours.bytes.data(), sizeof(theirs));
    return theirs;
}

TEST(prm_mlx5dv, control_segment_both_ways)
{
    using seg = wqe_control_segment;
    mlx5_wqe_ctrl_seg theirs;
    mlx5dv_set_ctrl_seg(&theirs, 0xabcd, MLX5_OPCODE_UMR, 0x5a, 0x123456,
                        MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED | MLX5_WQE_CTRL_FENCE, 0x2d, 0x77,
                        htobe32(0x11223344));
    theirs.dci_stream_channel_id = htobe16(0x9876);
    const auto read              = as<seg>(theirs);
    EXPECT_EQ(read.get(seg::wqe_index), 0xabcd);
    EXPECT_EQ(read.get(seg::opcode), wqe_opcode::umr);
    EXPECT_EQ(read.get(seg::op_mod), 0x5a);
    EXPECT_EQ(read.get(seg::qpn), 0x123456U);
    EXPECT_EQ(read.get(seg::ds), 0x2d);
    EXPECT_EQ(read.get(seg::signature), 0x77);
    EXPECT_EQ(read.get(seg::dci_stream_channel_id), 0x9876);
    EXPECT_EQ(read.get(seg::fence), wqe_fence::small_and_full);
    EXPECT_EQ(read.get(seg::completion), wqe_completion::always);
    EXPECT_TRUE(read.get(seg::solicited));
    EXPECT_EQ(read.get(seg::imm), 0x11223344U);

    storage<seg> ours;
    const auto write = *ours;
    write.put(seg::wqe_index, std::uint16_t{0xabcd});
    write.put<wqe_opcode::umr>(seg::opcode);
    write.put(seg::op_mod, std::uint8_t{0x5a});
    write.put<0x123456>(seg::qpn);
    write.put<0x2d>(seg::ds);
    write.put(seg::signature, std::uint8_t{0x77});
    write.put(seg::dci_stream_channel_id, std::uint16_t{0x9876});
    write.put<wqe_fence::small_and_full>(seg::fence);
    write.put<wqe_completion::always>(seg::completion);
    write.put<true>(seg::solicited);
    write.put(seg::imm, std::uint32_t{0x11223344});
    EXPECT_EQ(std::memcmp(&theirs, ours.bytes.data(), sizeof(theirs)), 0);
}

TEST(prm_mlx5dv, small_fence_is_the_initiators)
{
    mlx5_wqe_ctrl_seg theirs{};
    theirs.fm_ce_se = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
    EXPECT_EQ(as<wqe_control_segment>(theirs).get(wqe_control_segment::fence), wqe_fence::initiator_small);
}

TEST(prm_mlx5dv, data_segments_both_ways)
{
    using seg = wqe_data_segment;
    mlx5_wqe_data_seg theirs;
    mlx5dv_set_data_seg(&theirs, 0x7fffffff, 0xaabbccdd, 0x1122334455667788);
    EXPECT_EQ(as<seg>(theirs).get(seg::byte_count), 0x7fffffffU);
    EXPECT_FALSE(as<seg>(theirs).get(seg::in_line));
    EXPECT_EQ(as<seg>(theirs).get(seg::lkey), 0xaabbccddU);
    EXPECT_EQ(as<seg>(theirs).get(seg::addr), 0x1122334455667788U);

    storage<seg> ours;
    (*ours).put<0x7fffffff>(seg::byte_count);
    (*ours).put(seg::lkey, std::uint32_t{0xaabbccdd});
    (*ours).put(seg::addr, std::uint64_t{0x1122334455667788});
    EXPECT_EQ(std::memcmp(&theirs, ours.bytes.data(), sizeof(theirs)), 0);

    const mlx5_wqe_inl_data_seg in_line{htobe32(MLX5_INLINE_SEG | 0x123)};
    EXPECT_TRUE(as<wqe_inline_segment>(in_line).get(wqe_inline_segment::in_line));
    EXPECT_EQ(as<wqe_inline_segment>(in_line).get(wqe_inline_segment::byte_count), 0x123U);
}

TEST(prm_mlx5dv, remote_address_and_atomic_segments)
{
    using remote = wqe_remote_address_segment;
    using atomic = wqe_atomic_segment;
    const mlx5_wqe_raddr_seg raddr{htobe64(0x0102030405060708), htobe32(0xdeadbeef), 0};
    EXPECT_EQ(as<remote>(raddr).get(remote::raddr), 0x0102030405060708U);
    EXPECT_EQ(as<remote>(raddr).get(remote::rkey), 0xdeadbeefU);
    const mlx5_wqe_atomic_seg operands{htobe64(0x1111222233334444), htobe64(0x5555666677778888)};
    EXPECT_EQ(as<atomic>(operands).get(atomic::swap_add), 0x1111222233334444U);
    EXPECT_EQ(as<atomic>(operands).get(atomic::compare), 0x5555666677778888U);
}

TEST(prm_mlx5dv, address_vector)
{
    using seg     = wqe_address_vector;
    using compact = wqe_compact_address_vector;
    mlx5_wqe_av theirs{};
    theirs.key.dc_key   = htobe64(0x1234567890abcdef);
    theirs.dqp_dct      = htobe32(MLX5_EXTENDED_UD_AV | 0x654321);
    theirs.stat_rate_sl = 0x9 << 4 | 0x6;
    theirs.fl_mlid      = 1 << 7 | 0x3b;
    theirs.rlid         = htobe16(0xbeef);
    for (std::size_t i = 0; i < sizeof(theirs.rmac); i++) {
        theirs.rmac[i] = static_cast<std::uint8_t>(0x10 + i);
    }
    theirs.tclass     = 0x5c;
    theirs.hop_limit  = 0x40;
    theirs.grh_gid_fl = htobe32(1U << 30 | 0x21U << 20 | 0xfedcb);
    theirs.rgid[0]    = 0xfe;
    theirs.rgid[15]   = 0x99;

    const auto read = as<seg>(theirs);
    const auto base = read.at(seg::compact);
    EXPECT_EQ(base.get(compact::dc_key), 0x1234567890abcdefU);
    EXPECT_EQ(base.get(compact::qkey), 0x12345678U);
    EXPECT_TRUE(base.get(compact::extended));
    EXPECT_EQ(base.get(compact::destination_qpn), 0x654321U);
    EXPECT_EQ(base.get(compact::stat_rate), 9);
    EXPECT_EQ(base.get(compact::sl), 6);
    EXPECT_TRUE(base.get(compact::force_loopback));
    EXPECT_EQ(base.get(compact::mlid), 0x3b);
    EXPECT_EQ(base.get(compact::rlid), 0xbeef);
    EXPECT_EQ(read.get(seg::rmac), 0x101112131415U);
    EXPECT_EQ(read.get(seg::tclass), 0x5c);
    EXPECT_EQ(read.get(seg::hop_limit), 0x40);
    EXPECT_TRUE(read.get(seg::grh));
    EXPECT_EQ(read.get(seg::src_addr_index), 0x21);
    EXPECT_EQ(read.get(seg::flow_label), 0xfedcbU);
    EXPECT_EQ(read.at(seg::rgid)[0], std::byte{0xfe});
    EXPECT_EQ(read.at(seg::rgid)[15], std::byte{0x99});
}

TEST(prm_mlx5dv, umr_segments)
{
    using seg = wqe_umr_control_segment;
    mlx5_wqe_umr_ctrl_seg control{};
    control.flags              = MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
    control.klm_octowords      = htobe16(0x1234);
    control.translation_offset = htobe16(0x5678);
    control.mkey_mask          = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
    EXPECT_TRUE(as<seg>(control).get(seg::inline_entries));
    EXPECT_TRUE(as<seg>(control).get(seg::check_qpn));
    EXPECT_FALSE(as<seg>(control).get(seg::check_free));
    EXPECT_FALSE(as<seg>(control).get(seg::translation_offset_en));
    EXPECT_EQ(as<seg>(control).get(seg::klm_octowords), 0x1234);
    EXPECT_EQ(as<seg>(control).get(seg::translation_offset), 0x5678);
    EXPECT_EQ(as<seg>(control).get(seg::bsf_octowords), 0x5678);
    EXPECT_EQ(std::to_underlying(as<seg>(control).get(seg::mkey_mask)),
              std::to_underlying(umr_mask::free) | std::to_underlying(umr_mask::start_addr));
    control.flags = MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE | MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET;
    EXPECT_TRUE(as<seg>(control).get(seg::check_free));
    EXPECT_TRUE(as<seg>(control).get(seg::translation_offset_en));
    EXPECT_FALSE(as<seg>(control).get(seg::inline_entries));
}

TEST(prm_mlx5dv, key_context_segment_is_the_key_context)
{
    mlx5_wqe_mkey_context_seg theirs{};
    theirs.free         = MLX5_WQE_MKEY_CONTEXT_FREE;
    theirs.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC | MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ |
                          MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_READ;
    theirs.qpn_mkey                  = htobe32(0xfedcba98);
    theirs.flags_pd                  = htobe32(1U << 30 | 0x135790);
    theirs.start_addr                = htobe64(0x1020304050607080);
    theirs.len                       = htobe64(0x123456789);
    theirs.bsf_octword_size          = htobe32(0x11);
    theirs.translations_octword_size = htobe32(0x2222);
    theirs.log_page_size             = 0x1f;
    const auto read                  = as<mkc>(theirs);
    EXPECT_TRUE(read.get(mkc::free));
    EXPECT_TRUE(read.get(mkc::a));
    EXPECT_FALSE(read.get(mkc::rw));
    EXPECT_TRUE(read.get(mkc::rr));
    EXPECT_FALSE(read.get(mkc::lw));
    EXPECT_TRUE(read.get(mkc::lr));
    EXPECT_EQ(read.get(mkc::qpn), 0xfedcbaU);
    EXPECT_EQ(read.get(mkc::mkey_7_0), 0x98);
    EXPECT_TRUE(read.get(mkc::bsf_en));
    EXPECT_EQ(read.get(mkc::pd), 0x135790U);
    EXPECT_EQ(read.get(mkc::start_addr), 0x1020304050607080U);
    EXPECT_EQ(read.get(mkc::len), 0x123456789U);
    EXPECT_EQ(read.get(mkc::bsf_octword_size), 0x11U);
    EXPECT_EQ(read.get(mkc::translations_octword_size), 0x2222U);
    EXPECT_EQ(read.get(mkc::log_entity_size), 0x1f);
}

TEST(prm_mlx5dv, translation_entries)
{
    const mlx5_wqe_umr_klm_seg entry{htobe32(0x80000000), htobe32(0x12345678), htobe64(0xa1a2a3a4a5a6a7a8)};
    EXPECT_EQ(as<klm>(entry).get(klm::byte_count), 0x80000000U);
    EXPECT_EQ(as<klm>(entry).get(klm::mkey), 0x12345678U);
    EXPECT_EQ(as<klm>(entry).get(klm::address), 0xa1a2a3a4a5a6a7a8U);
    EXPECT_EQ(as<ksm>(entry).get(ksm::mkey), 0x12345678U);
    EXPECT_EQ(as<ksm>(entry).get(ksm::address), 0xa1a2a3a4a5a6a7a8U);

    mlx5_wqe_umr_repeat_block_seg block{};
    block.byte_count   = htobe32(0x01020304);
    block.op           = htobe32(repeat_block_op);
    block.repeat_count = htobe32(0x0a0b0c0d);
    block.num_ent      = htobe16(0x1122);
    EXPECT_EQ(as<repeat_block_header>(block).get(repeat_block_header::byte_count), 0x01020304U);
    EXPECT_EQ(as<repeat_block_header>(block).get(repeat_block_header::op), repeat_block_op);
    EXPECT_EQ(as<repeat_block_header>(block).get(repeat_block_header::repeat_count), 0x0a0b0c0dU);
    EXPECT_EQ(as<repeat_block_header>(block).get(repeat_block_header::num_ent), 0x1122);

    const mlx5_wqe_umr_repeat_ent_seg turn{htobe16(0xffee), htobe16(0xddcc), htobe32(0x99887766), htobe64(0x1)};
    EXPECT_EQ(as<repeat_block_entry>(turn).get(repeat_block_entry::stride), 0xffee);
    EXPECT_EQ(as<repeat_block_entry>(turn).get(repeat_block_entry::byte_count), 0xddcc);
    EXPECT_EQ(as<repeat_block_entry>(turn).get(repeat_block_entry::mkey), 0x99887766U);
    EXPECT_EQ(as<repeat_block_entry>(turn).get(repeat_block_entry::va), 1U);
}

TEST(prm_mlx5dv, shared_receive_link)
{
    mlx5_wqe_srq_next_seg theirs{};
    theirs.next_wqe_index = htobe16(0x1357);
    theirs.signature      = 0x24;
    EXPECT_EQ(as<wqe_srq_next_segment>(theirs).get(wqe_srq_next_segment::next_wqe_index), 0x1357);
    EXPECT_EQ(as<wqe_srq_next_segment>(theirs).get(wqe_srq_next_segment::signature), 0x24);
}

TEST(prm_mlx5dv, completion_written_by_us_is_read_by_their_helpers)
{
    storage<cqe64> ours;
    const auto write = *ours;
    write.put<cqe_opcode::responder_send_imm>(cqe64::opcode);
    write.put<cqe_format::inline_32>(cqe64::format);
    write.put<true>(cqe64::solicited);
    write.put<true>(cqe64::owner);
    write.put<0xabcdef>(cqe64::srqn_uidx);
    write.put(cqe64::imm_inval_pkey, std::uint32_t{0x01020304});
    write.put(cqe64::byte_cnt, std::uint32_t{0x55667788});
    write.put(cqe64::timestamp, std::uint64_t{0x1122334455667788});
    write.put<wqe_opcode::rdma_read>(cqe64::sop_opcode);
    write.put<0x123456>(cqe64::qpn);
    write.put(cqe64::wqe_counter, std::uint16_t{0x9abc});
    write.put(cqe64::signature, std::uint8_t{0x3c});
    write.put(cqe64::slid, std::uint16_t{0x7bcd});
    write.put<2>(cqe64::grh);
    write.put<0xb>(cqe64::sl);
    write.put<0x765432>(cqe64::src_qpn);
    write.put(cqe64::ml_path, std::uint8_t{0x85});
    write.put(cqe64::app, std::uint8_t{0x61});
    write.put(cqe64::app_op, std::uint8_t{0x62});
    write.put(cqe64::app_info, std::uint16_t{0x6364});
    write.put(cqe64::wqe_id, std::uint16_t{0x4142});
    write.put(cqe64::vlan_info, std::uint16_t{0x5152});
    write.put(cqe64::hds_ip_ext, std::uint8_t{0x71});
    write.put(cqe64::l4_hdr_type_etc, std::uint8_t{0x72});

    auto theirs = back<mlx5_cqe64>(ours);
    EXPECT_EQ(mlx5dv_get_cqe_owner(&theirs), 1);
    EXPECT_EQ(mlx5dv_get_cqe_opcode(&theirs), MLX5_CQE_RESP_SEND_IMM);
    EXPECT_EQ(mlx5dv_get_cqe_se(&theirs), 1);
    EXPECT_EQ(mlx5dv_get_cqe_format(&theirs), 1);
    EXPECT_EQ(be32toh(theirs.srqn_uidx), 0xabcdefU);
    EXPECT_EQ(be32toh(theirs.imm_inval_pkey), 0x01020304U);
    EXPECT_EQ(be32toh(theirs.byte_cnt), 0x55667788U);
    EXPECT_EQ(be64toh(theirs.timestamp), 0x1122334455667788U);
    EXPECT_EQ(be32toh(theirs.sop_drop_qpn), std::uint32_t{MLX5_OPCODE_RDMA_READ} << 24 | 0x123456);
    EXPECT_EQ(be16toh(theirs.wqe_counter), 0x9abc);
    EXPECT_EQ(theirs.signature, 0x3c);
    EXPECT_EQ(be16toh(theirs.slid), 0x7bcd);
    EXPECT_EQ(be32toh(theirs.flags_rqpn), 0x2b765432U);
    EXPECT_EQ(theirs.ml_path, 0x85);
    EXPECT_EQ(theirs.app, 0x61);
    EXPECT_EQ(theirs.app_op, 0x62);
    EXPECT_EQ(be16toh(theirs.app_info), 0x6364);
    EXPECT_EQ(be16toh(theirs.wqe_id), 0x4142);
    EXPECT_EQ(be16toh(theirs.vlan_info), 0x5152);
    EXPECT_EQ(theirs.hds_ip_ext, 0x71);
    EXPECT_EQ(theirs.l4_hdr_type_etc, 0x72);
}

TEST(prm_mlx5dv, error_completion)
{
    storage<cqe64_error> ours;
    const auto write = *ours;
    write.put<cqe_opcode::requester_error>(cqe64_error::opcode);
    write.put<cqe_syndrome::remote_access>(cqe64_error::syndrome);
    write.put(cqe64_error::vendor_error_syndrome, std::uint8_t{0x88});
    write.put<0x112233>(cqe64_error::srqn);
    write.put<wqe_opcode::rdma_write>(cqe64_error::sop_opcode);
    write.put<0x445566>(cqe64_error::qpn);
    write.put(cqe64_error::wqe_counter, std::uint16_t{0x7788});
    write.put(cqe64_error::signature, std::uint8_t{0x99});

    const auto theirs = back<mlx5_err_cqe>(ours);
    EXPECT_EQ(theirs.op_own >> 4, MLX5_CQE_REQ_ERR);
    EXPECT_EQ(theirs.syndrome, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_EQ(theirs.vendor_err_synd, 0x88);
    EXPECT_EQ(be32toh(theirs.srqn), 0x112233U);
    EXPECT_EQ(be32toh(theirs.s_wqe_opcode_qpn), std::uint32_t{MLX5_OPCODE_RDMA_WRITE} << 24 | 0x445566);
    EXPECT_EQ(be16toh(theirs.wqe_counter), 0x7788);
    EXPECT_EQ(theirs.signature, 0x99);
}

TEST(prm_mlx5dv, doorbell_records)
{
    std::array<__be32, 2> qp{};
    qp[MLX5_RCV_DBR] = htobe32(0x1234);
    qp[MLX5_SND_DBR] = htobe32(0x5678);
    EXPECT_EQ(as<qp_doorbell_record>(qp).get(qp_doorbell_record::receive_counter), 0x1234);
    EXPECT_EQ(as<qp_doorbell_record>(qp).get(qp_doorbell_record::send_counter), 0x5678);

    const std::uint32_t arm = 3U << 28 | MLX5_CQ_DB_REQ_NOT_SOL | 0xabcdef;
    const std::array<__be32, 2> cq{htobe32(0x123456), htobe32(arm)};
    using record = cq_doorbell_record;
    EXPECT_EQ(as<record>(cq).get(record::consumer_counter), 0x123456U);
    EXPECT_EQ(as<record>(cq).get(record::arm_sequence), 3);
    EXPECT_EQ(as<record>(cq).get(record::arm_kind), cq_arm_kind::solicited_only);
    EXPECT_EQ(as<record>(cq).get(record::arm_consumer_counter), 0xabcdefU);
}

} // namespace
} // namespace ucxl::prm
