// The text of commands, WQEs, CQEs and events, for valid and invalid bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "prm/cq.h"
#include "prm/cqe.h"
#include "prm/decode.h"
#include "prm/eq.h"
#include "prm/hca_cap_pages.h"
#include "prm/mkey.h"
#include "prm/object.h"
#include "prm/qp.h"
#include "prm/umr.h"
#include "support/random.h"
#include "wqe_builder.h"

namespace ucxl::prm
{
namespace
{

using ::testing::HasSubstr;
using ::testing::Not;

template <typename S>
std::vector<std::byte> bytes_of(const storage<S>& structure)
{
    return {structure.bytes.begin(), structure.bytes.end()};
}

template <typename S, typename Entry>
std::vector<std::byte> followed_by(const storage<S>& structure, const storage<Entry>& entry)
{
    auto bytes = bytes_of(structure);
    bytes.insert(bytes.end(), entry.bytes.begin(), entry.bytes.end());
    return bytes;
}

storage<create_mkey_in> create_key(mkey_access_mode mode)
{
    storage<create_mkey_in> input;
    (*input).put<command::create_mkey>(create_mkey_in::opcode);
    (*input).put<0x5>(create_mkey_in::uid);
    const auto key = (*input).at(create_mkey_in::memory_key);
    key.put<true>(mkc::umr_en);
    key.put<any_qpn>(mkc::qpn);
    set_access_mode(key, mode);
    return input;
}

TEST(prm_decode, command_and_answer)
{
    storage<create_mkey_out> out;
    (*out).put<0x123456>(create_mkey_out::mkey_index);
    const auto text = decode_command(create_key(mkey_access_mode::klm).bytes, out.bytes);
    EXPECT_EQ(text, "create_mkey: opcode=create_mkey uid=5\n"
                    "  memory_key: umr_en=1 access_mode_1_0=2 qpn=0xffffff\n"
                    "answer: status=ok syndrome=0 mkey_index=0x123456\n");
}

TEST(prm_decode, translation_entries_follow_the_access_mode)
{
    storage<klm> entry;
    (*entry).put(klm::byte_count, std::uint32_t{0x1000});
    (*entry).put(klm::mkey, std::uint32_t{0x77});
    (*entry).put(klm::address, std::uint64_t{0xdead0000});
    EXPECT_THAT(decode_command(followed_by(create_key(mkey_access_mode::klm), entry)),
                HasSubstr("  klm[0]: byte_count=0x1000 mkey=0x77 address=0xdead0000\n"));
    EXPECT_THAT(decode_command(followed_by(create_key(mkey_access_mode::ksm), entry)),
                HasSubstr("  ksm[0]: mkey=0x77 address=0xdead0000 reserved@0=00001000\n"));
    EXPECT_THAT(decode_command(followed_by(create_key(mkey_access_mode::mtt), entry)), HasSubstr("  mtt[1]: "));
    EXPECT_THAT(decode_command(followed_by(create_key(mkey_access_mode::memic), entry)),
                HasSubstr("  entries: 16 bytes 00001000.00000077"));
}

TEST(prm_decode, error_answer_has_its_status_only)
{
    storage<create_mkey_out> out;
    (*out).put<command_status::bad_parameter>(create_mkey_out::status);
    (*out).put(create_mkey_out::syndrome, std::uint32_t{0xabcdef01});
    EXPECT_THAT(decode_command(create_key(mkey_access_mode::klm).bytes, out.bytes),
                HasSubstr("answer: status=bad_parameter syndrome=0xabcdef01\n"));
}

TEST(prm_decode, transition_with_and_without_extension)
{
    storage<modify_qp_ext_in> input;
    (*input).put<command::init2init_qp>(modify_qp_ext_in::opcode);
    (*input).at(modify_qp_ext_in::extension).put<true>(qpc_ext::mmo);
    EXPECT_THAT(decode_command(input.bytes), HasSubstr("  more: 192 bytes 20"));
    (*input).put<true>(modify_qp_ext_in::qpc_ext);
    EXPECT_THAT(decode_command(input.bytes), HasSubstr("  extension: mmo=1\n"));
}

TEST(prm_decode, optional_fields_by_name)
{
    storage<modify_qp_in> input;
    (*input).put<command::rtr2rts_qp>(modify_qp_in::opcode);
    EXPECT_TRUE((*input).set(modify_qp_in::opt_param_mask, 0x80000000U | 1U << 1 | 1U << 14));
    (*input).at(modify_qp_in::qpc).put<qp_state::rts>(qpc::state);
    const auto text = decode_command(input.bytes);
    EXPECT_THAT(text, HasSubstr("opt_param_mask=remote_read_enable|ack_timeout|0x80000000"));
    EXPECT_THAT(text, HasSubstr("qpc: state=rts st=rc"));
}

TEST(prm_decode, capability_page_that_was_asked_for)
{
    storage<query_hca_cap_in> input;
    storage<query_hca_cap_out> out;
    (*input).put<command::query_hca_cap>(query_hca_cap_in::opcode);
    (*out).at(query_hca_cap_out::general).put<0x1234>(hca_cap::vhca_id);
    EXPECT_THAT(decode_command(input.bytes, out.bytes), HasSubstr("  general: vhca_id=0x1234"));
    (*input).put<(0x3 << 1) | cap_current>(query_hca_cap_in::op_mod);
    EXPECT_THAT(decode_command(input.bytes, out.bytes), HasSubstr("  atomic: "));
    (*input).put<(0x7 << 1) | cap_current>(query_hca_cap_in::op_mod);
    EXPECT_THAT(decode_command(input.bytes, out.bytes), HasSubstr("  more: 4096 bytes "));
}

TEST(prm_decode, alias_object)
{
    storage<create_alias_object_in> input;
    (*input).put<command::create_general_object>(create_alias_object_in::opcode);
    (*input).put<object_type::mkey>(create_alias_object_in::obj_type);
    (*input).put<true>(create_alias_object_in::alias_object);
    (*input).at(create_alias_object_in::alias).put(alias_context::vhca_id_to_be_accessed, std::uint16_t{0x42});
    EXPECT_THAT(decode_command(input.bytes), HasSubstr("  alias: vhca_id_to_be_accessed=0x42\n"));
}

TEST(prm_decode, unknown_command_in_hexadecimal)
{
    const std::vector<std::byte> input(20, std::byte{0xab});
    EXPECT_EQ(decode_command(input), "unknown command: opcode=0xabab uid=0xabab op_mod=0xabab reserved@4=abab0000\n"
                                     "  more: 12 bytes abababab.abababab.abababab\n");
}

TEST(prm_decode, command_cut_short)
{
    const auto input = create_key(mkey_access_mode::klm);
    EXPECT_THAT(decode_command(std::span(input.bytes).first(100)),
                HasSubstr("create_mkey: cut short, 272 bytes wanted"));
    EXPECT_THAT(decode_command({}), HasSubstr("none there"));
}

TEST(prm_decode, send_wqe)
{
    wqe_builder wqe(wqe_opcode::rdma_write);
    wqe.add<wqe_remote_address_segment>([](auto view) {
        view.put(wqe_remote_address_segment::raddr, std::uint64_t{0x7f0000001000});
        view.put(wqe_remote_address_segment::rkey, std::uint32_t{0x1700});
    });
    wqe.add_inline(5);
    const auto text = decode_wqe(wqe.bytes());
    EXPECT_THAT(text, HasSubstr("send wqe rdma_write:\n  control: op_mod=0 wqe_index=0 opcode=rdma_write"));
    EXPECT_THAT(text, HasSubstr("  remote: raddr=0x7f0000001000 rkey=0x1700\n"));
    EXPECT_THAT(text, HasSubstr("  inline: 5 bytes eeeeeeee.ee\n"));
    EXPECT_THAT(text, Not(HasSubstr("unknown")));
}

TEST(prm_decode, umr_with_repeat_block)
{
    wqe_builder wqe(wqe_opcode::umr);
    wqe.add<wqe_umr_control_segment>([](auto view) {
        view.template put<true>(wqe_umr_control_segment::inline_entries);
        view.template put<4>(wqe_umr_control_segment::klm_octowords);
        (void)view.set(wqe_umr_control_segment::mkey_mask, std::to_underlying(umr_mask::len) | 1U << 6);
    });
    wqe.add<mkc>([](auto view) { view.put(mkc::len, std::uint64_t{64}); });
    wqe.add<repeat_block_header>([](auto view) {
        view.template put<repeat_block_op>(repeat_block_header::op);
        view.template put<7>(repeat_block_header::repeat_count);
    });
    for (int i = 0; i < 3; i++) {
        wqe.add<repeat_block_entry>([](auto view) { view.put(repeat_block_entry::stride, std::uint16_t{0x40}); });
    }
    const auto text = decode_wqe(wqe.bytes());
    EXPECT_THAT(text, HasSubstr("mkey_mask=len|start_addr"));
    EXPECT_THAT(text, HasSubstr("  key: len=0x40\n"));
    EXPECT_THAT(text, HasSubstr("  repeat: byte_count=0 op=0x400 repeat_count=7 num_ent=0\n"));
    EXPECT_THAT(text, HasSubstr("    entry[2]: stride=0x40 byte_count=0 mkey=0 va=0\n"));
}

TEST(prm_decode, faulty_wqe_shows_its_bytes)
{
    const auto text = decode_wqe(wqe_builder(wqe_opcode::rdma_read).bytes());
    EXPECT_THAT(text, HasSubstr("a segment is missing or cut short"));
    EXPECT_THAT(decode_wqe(wqe_builder(wqe_opcode::nop).bytes(9)), HasSubstr("longer than the bytes at hand"));
    EXPECT_THAT(decode_wqe({}), HasSubstr("missing or cut short"));
}

TEST(prm_decode, receive_wqes)
{
    const std::vector<std::byte> bytes(40, std::byte{1});
    EXPECT_THAT(decode_receive_wqe(bytes), HasSubstr("  data[1]: in_line=0 byte_count=0x1010101"));
    EXPECT_THAT(decode_receive_wqe(bytes), HasSubstr("  bytes: 8 bytes"));
    EXPECT_THAT(decode_receive_wqe(bytes, true), HasSubstr("  next: next_wqe_index=0x101"));
}

TEST(prm_decode, completions)
{
    storage<cqe64> cqe;
    (*cqe).put<cqe_opcode::responder_send>(cqe64::opcode);
    (*cqe).put(cqe64::byte_cnt, std::uint32_t{4096});
    EXPECT_THAT(decode_cqe(cqe.bytes), HasSubstr("cqe responder_send:\n  completion: byte_cnt=0x1000"));
    (*cqe).put<cqe_format::compressed>(cqe64::format);
    EXPECT_THAT(decode_cqe(cqe.bytes), HasSubstr("  mini[6]: wqe_counter=0"));

    storage<cqe64_error> error;
    (*error).put<cqe_opcode::requester_error>(cqe64_error::opcode);
    (*error).put<cqe_syndrome::remote_access>(cqe64_error::syndrome);
    EXPECT_THAT(decode_cqe(error.bytes), HasSubstr("cqe requester_error:\n  error: syndrome=remote_access"));

    storage<cqe128> wide;
    (*wide).at(cqe128::cqe).put<cqe_opcode::resize_cq>(cqe64::opcode);
    EXPECT_THAT(decode_cqe(wide.bytes), HasSubstr("cqe resize_cq:"));
    EXPECT_THAT(decode_cqe(std::span(cqe.bytes).first(63)), HasSubstr("cut short"));
}

TEST(prm_decode, events)
{
    storage<eqe> event;
    (*event).put<event_type::cq_error>(eqe::event_type);
    (*event).at(eqe::event_data)[11] = std::byte{0x5};
    EXPECT_THAT(decode_eqe(event.bytes), HasSubstr("event_type=cq_error"));
    EXPECT_THAT(decode_eqe(event.bytes), HasSubstr("  data: syndrome=5\n"));
}

TEST(prm_decode, random_bytes_give_complete_lines)
{
    test::random from(test::run_seed());
    RecordProperty("seed", std::to_string(test::run_seed()));
    for (int i = 0; i < 3000; i++) {
        std::vector<std::byte> bytes(from.below(600));
        for (auto& b : bytes) {
            b = static_cast<std::byte>(from.one_in(2) ? from.next() : 0);
        }
        const auto half = from.below(bytes.size() + 1);
        for (const auto& text :
             {decode_command(std::span(bytes).first(half), std::span(bytes).subspan(half)), decode_wqe(bytes),
              decode_receive_wqe(bytes, from.one_in(2)), decode_cqe(bytes), decode_eqe(bytes)}) {
            ASSERT_FALSE(text.empty());
            ASSERT_EQ(text.back(), '\n');
        }
    }
}

} // namespace
} // namespace ucxl::prm
