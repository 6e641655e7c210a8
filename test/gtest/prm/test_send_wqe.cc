// Parsing of send WQEs: the segments of each opcode, and incomplete WQEs.
#include <gtest/gtest.h>

#include <vector>

#include "prm/send_wqe.h"
#include "support/random.h"
#include "wqe_builder.h"

namespace ucxl::prm
{
namespace
{

using kind  = segment_kind;
using kinds = std::vector<segment_kind>;

constexpr auto nothing = [](auto) {};

struct walked {
    kinds seen;
    std::vector<wqe_segment> segments;
    wqe_fault fault;
};

walked walk(std::span<const std::byte> bytes, qp_service service = qp_service::rc)
{
    walked result{};
    send_wqe_walk walk(bytes, service);
    while (const auto segment = walk.next()) {
        result.seen.push_back(segment->kind);
        result.segments.push_back(*segment);
    }
    result.fault = walk.fault();
    return result;
}

TEST(prm_send_wqe, write_has_a_remote_address_and_data)
{
    wqe_builder wqe(wqe_opcode::rdma_write);
    wqe.add<wqe_remote_address_segment>(nothing).add<wqe_data_segment>(nothing).add<wqe_data_segment>(nothing);
    const auto bytes  = wqe.bytes();
    const auto result = walk(bytes);
    EXPECT_EQ(result.seen, (kinds{kind::control, kind::remote_address, kind::data, kind::data}));
    EXPECT_EQ(result.fault, wqe_fault::none);
    EXPECT_EQ(result.segments[3].bytes.data(), bytes.data() + 48);
}

TEST(prm_send_wqe, inline_data_is_without_its_padding)
{
    wqe_builder wqe(wqe_opcode::send);
    wqe.add_inline(13).add<wqe_data_segment>(nothing);
    const auto bytes  = wqe.bytes();
    const auto result = walk(bytes);
    EXPECT_EQ(result.seen, (kinds{kind::control, kind::inline_data, kind::data}));
    EXPECT_EQ(result.segments[1].bytes.size(), 4U + 13U);
}

TEST(prm_send_wqe, datagram_carries_an_address_vector_of_either_size)
{
    wqe_builder compact(wqe_opcode::send);
    compact.add<wqe_compact_address_vector>(nothing).add<wqe_data_segment>(nothing);
    EXPECT_EQ(walk(compact.bytes(), qp_service::ud).seen,
              (kinds{kind::control, kind::compact_address_vector, kind::data}));

    wqe_builder full(wqe_opcode::send);
    full.add<wqe_address_vector>([](auto view) {
        view.at(wqe_address_vector::compact).template put<true>(wqe_compact_address_vector::extended);
    });
    full.add<wqe_data_segment>(nothing);
    EXPECT_EQ(walk(full.bytes(), qp_service::ud).seen, (kinds{kind::control, kind::address_vector, kind::data}));
}

TEST(prm_send_wqe, dynamic_connection_has_an_address_before_the_remote_address)
{
    wqe_builder wqe(wqe_opcode::rdma_read);
    wqe.add<wqe_compact_address_vector>(nothing).add<wqe_remote_address_segment>(nothing);
    EXPECT_EQ(walk(wqe.bytes(), qp_service::dci).seen,
              (kinds{kind::control, kind::compact_address_vector, kind::remote_address}));
}

TEST(prm_send_wqe, xrc_names_its_receive_queue_first)
{
    wqe_builder wqe(wqe_opcode::rdma_write);
    wqe.add<wqe_xrc_segment>(nothing).add<wqe_remote_address_segment>(nothing);
    EXPECT_EQ(walk(wqe.bytes(), qp_service::xrc).seen, (kinds{kind::control, kind::xrc_target, kind::remote_address}));
}

TEST(prm_send_wqe, atomics_have_operands_of_their_size)
{
    const auto operands = [](wqe_opcode opcode, std::uint8_t op_mod, std::size_t units) {
        wqe_builder wqe(opcode, op_mod);
        wqe.add<wqe_remote_address_segment>(nothing);
        for (std::size_t i = 0; i < units; i++) {
            wqe.add<wqe_atomic_segment>(nothing);
        }
        wqe.add<wqe_data_segment>(nothing);
        const auto seen = walk(wqe.bytes()).seen;
        EXPECT_EQ(seen.size(), 4U);
        EXPECT_EQ(seen.empty() ? kind::unknown : seen.back(), kind::data);
        return seen.size() > 2 ? seen[2] : kind::unknown;
    };
    EXPECT_EQ(operands(wqe_opcode::atomic_cs, 0, 1), kind::atomic);
    EXPECT_EQ(operands(wqe_opcode::atomic_fa, 0, 1), kind::atomic);
    EXPECT_EQ(operands(wqe_opcode::atomic_masked_cs, 0, 2), kind::masked_swap);
    EXPECT_EQ(operands(wqe_opcode::atomic_masked_cs, extended_atomic | 1, 2), kind::masked_swap);
    EXPECT_EQ(operands(wqe_opcode::atomic_masked_cs, extended_atomic, 1), kind::masked_swap32);
    EXPECT_EQ(operands(wqe_opcode::atomic_masked_fa, extended_atomic, 1), kind::masked_add32);
    EXPECT_EQ(operands(wqe_opcode::atomic_masked_fa, extended_atomic | 1, 1), kind::masked_add);
}

wqe_builder umr(bool in_line, std::uint16_t octowords, std::uint16_t bsf_octowords = 0)
{
    wqe_builder wqe(wqe_opcode::umr);
    wqe.add<wqe_umr_control_segment>([&](auto view) {
        view.put(wqe_umr_control_segment::inline_entries, in_line);
        view.put(wqe_umr_control_segment::klm_octowords, octowords);
        view.put(wqe_umr_control_segment::bsf_octowords, bsf_octowords);
    });
    wqe.add<mkc>(nothing);
    return wqe;
}

TEST(prm_send_wqe, umr_with_inline_entries)
{
    auto wqe = umr(true, 4);
    for (int i = 0; i < 4; i++) {
        wqe.add<klm>(nothing);
    }
    const auto bytes  = wqe.bytes();
    const auto result = walk(bytes);
    EXPECT_EQ(result.seen, (kinds{kind::control, kind::umr_control, kind::key_context, kind::klm_entries}));
    EXPECT_EQ(result.segments[3].bytes.size(), 64U);
}

TEST(prm_send_wqe, umr_with_a_repeat_block_and_a_signature_format)
{
    auto wqe = umr(true, 4, 4);
    wqe.add<repeat_block_header>([](auto view) { view.template put<repeat_block_op>(repeat_block_header::op); });
    wqe.add<repeat_block_entry>(nothing).add<repeat_block_entry>(nothing).add<repeat_block_entry>(nothing);
    wqe.add<bsf>(nothing);
    EXPECT_EQ(walk(wqe.bytes()).seen,
              (kinds{kind::control, kind::umr_control, kind::key_context, kind::repeat_block, kind::signature_format}));
}

TEST(prm_send_wqe, umr_with_entries_behind_a_pointer)
{
    auto wqe = umr(false, 1000);
    wqe.add<wqe_pointer_segment>(nothing);
    EXPECT_EQ(walk(wqe.bytes()).seen, (kinds{kind::control, kind::umr_control, kind::key_context, kind::pointer}));
}

TEST(prm_send_wqe, umr_of_the_context_alone)
{
    EXPECT_EQ(walk(umr(true, 0).bytes()).seen, (kinds{kind::control, kind::umr_control, kind::key_context}));
}

TEST(prm_send_wqe, longer_than_the_bytes_at_hand_is_truncated)
{
    const auto bytes  = wqe_builder(wqe_opcode::send).bytes(2);
    const auto result = walk(bytes);
    EXPECT_EQ(result.fault, wqe_fault::truncated);
    EXPECT_EQ(result.seen, kinds{kind::control});
}

TEST(prm_send_wqe, without_a_segment_that_has_to_be_there_is_too_short)
{
    EXPECT_EQ(walk(wqe_builder(wqe_opcode::rdma_write).bytes()).fault, wqe_fault::too_short);
    EXPECT_EQ(walk(wqe_builder(wqe_opcode::umr).bytes()).fault, wqe_fault::too_short);
    EXPECT_EQ(walk(wqe_builder(wqe_opcode::send).bytes(0)).fault, wqe_fault::too_short);
    EXPECT_EQ(walk({}).fault, wqe_fault::too_short);
}

TEST(prm_send_wqe, umr_with_fewer_entries_than_it_says_is_too_short)
{
    EXPECT_EQ(walk(umr(true, 4).bytes()).fault, wqe_fault::too_short);
    EXPECT_EQ(walk(umr(true, 4).add<klm>(nothing).bytes()).fault, wqe_fault::too_short);
    EXPECT_EQ(walk(umr(false, 4).bytes()).fault, wqe_fault::too_short);
    EXPECT_EQ(walk(umr(true, 0, 4).add<klm>(nothing).bytes()).fault, wqe_fault::too_short);
}

TEST(prm_send_wqe, inline_data_longer_than_the_wqe_is_too_short)
{
    wqe_builder wqe(wqe_opcode::send);
    wqe.add<wqe_inline_segment>([](auto view) {
        view.template put<true>(wqe_inline_segment::in_line);
        view.template put<0x7fffffff>(wqe_inline_segment::byte_count);
    });
    auto bytes = wqe.bytes();
    bytes.resize(32);
    (void)view<wqe_control_segment>::over(bytes)->set(wqe_control_segment::ds, 2);
    EXPECT_EQ(walk(bytes).fault, wqe_fault::too_short);
}

TEST(prm_send_wqe, segments_of_random_bytes_are_in_order_and_inside)
{
    test::random from(test::run_seed());
    RecordProperty("seed", std::to_string(test::run_seed()));
    for (int i = 0; i < 20000; i++) {
        std::vector<std::byte> bytes(from.below(300));
        for (auto& b : bytes) {
            b = static_cast<std::byte>(from.one_in(3) ? from.next() : 0);
        }
        const auto service        = static_cast<qp_service>(from.below(10));
        const std::byte* expected = bytes.data();
        send_wqe_walk walk(bytes, service);
        while (const auto segment = walk.next()) {
            ASSERT_FALSE(segment->bytes.empty());
            ASSERT_GE(segment->bytes.data(), expected);
            expected = segment->bytes.data() + segment->bytes.size();
            ASSERT_LE(expected, bytes.data() + bytes.size());
        }
        ASSERT_FALSE(walk.next());
    }
}

} // namespace
} // namespace ucxl::prm
