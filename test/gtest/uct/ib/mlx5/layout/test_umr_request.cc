// Compares requests byte for byte with structures that rdma-core declares (mlx5dv.h) and fills in the same way, and
// tests values that do not fit their fields.
#include "uct/ib/mlx5/layout/umr_request.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

using namespace mlx5;

constexpr std::uint32_t key = 0x12345607;
constexpr std::uint32_t qpn = 0xabcdef;
constexpr std::uint64_t mask =
    MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;

struct expected_head {
    mlx5_wqe_ctrl_seg control{};
    mlx5_wqe_umr_ctrl_seg umr{};
    mlx5_wqe_mkey_context_seg context{};
};
static_assert(sizeof(expected_head) == 128);

expected_head head_of(std::size_t size, std::uint8_t opcode, std::uint8_t fm_ce_se)
{
    expected_head head;
    mlx5dv_set_ctrl_seg(&head.control, 0, opcode, 0, qpn, fm_ce_se, static_cast<std::uint8_t>(size / 16), 0,
                        htobe32(key));
    head.umr.mkey_mask    = htobe64(mask);
    head.context.qpn_mkey = htobe32(0xffffff00 | (key & 0xff));
    return head;
}

std::string hex(const void* bytes, std::size_t size)
{
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        constexpr char digits[] = "0123456789abcdef";
        const auto byte         = static_cast<const unsigned char*>(bytes)[i];
        text += digits[byte >> 4];
        text += digits[byte & 15];
        text += i % 16 == 15 ? "\n" : "";
    }
    return text;
}

TEST(umr_request, inline_list_is_what_libmlx5_writes)
{
    const std::vector<resolved_entry> entries{{0x100, 0x7f0000001000, 64, 0}, {0x200, 0x7f0000002000, 1U << 31, 0}};
    std::vector<std::byte> encoded(entries_bytes(key_kind::klm, entries.size()));
    ASSERT_TRUE(encode_entries(key_kind::klm, 1, entries, encoded).has_value());
    request_bytes request;
    encode_bind({key, {true, true, true, true}, 0x80000040, std::nullopt}, qpn, {true, prm::wqe_fence::initiator_small},
                encoded, request);

    expected_head head =
        head_of(128 + 64, MLX5_OPCODE_UMR, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
    head.umr.flags         = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
    head.umr.klm_octowords = htobe16(4);
    head.context.access_flags =
        MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE | MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ |
        MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE | MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
    head.context.len = htobe64(0x80000040);
    mlx5_wqe_data_seg klms[4]{};
    mlx5dv_set_data_seg(&klms[0], 64, 0x100, 0x7f0000001000);
    mlx5dv_set_data_seg(&klms[1], 1U << 31, 0x200, 0x7f0000002000);
    ASSERT_EQ(request.size, sizeof(head) + sizeof(klms));
    EXPECT_EQ(hex(request.bytes.data(), sizeof(head)), hex(&head, sizeof(head)));
    EXPECT_EQ(hex(request.bytes.data() + sizeof(head), sizeof(klms)), hex(klms, sizeof(klms)));
}

TEST(umr_request, repeat_block_is_what_libmlx5_writes)
{
    const std::vector<resolved_entry> entries{{0x100, 0x1000, 12, 32}, {0x200, 0x2000, 65535, 65535}};
    std::vector<std::byte> encoded(entries_bytes(key_kind::repeat, entries.size()));
    ASSERT_TRUE(encode_entries(key_kind::repeat, 7, entries, encoded).has_value());

    struct {
        mlx5_wqe_umr_repeat_block_seg header{};
        mlx5_wqe_umr_repeat_ent_seg entries[3]{};
    } expected;
    static_assert(sizeof(expected) == 64);
    expected.header.op           = htobe32(0x400);
    expected.header.num_ent      = htobe16(2);
    expected.header.repeat_count = htobe32(7);
    expected.header.byte_count   = htobe32(12 + 65535);
    expected.entries[0]          = {htobe16(32), htobe16(12), htobe32(0x100), htobe64(0x1000)};
    expected.entries[1]          = {htobe16(65535), htobe16(65535), htobe32(0x200), htobe64(0x2000)};
    ASSERT_EQ(encoded.size(), sizeof(expected));
    EXPECT_EQ(hex(encoded.data(), encoded.size()), hex(&expected, sizeof(expected)));
}

TEST(umr_request, start_address_is_set_only_when_given)
{
    const std::vector<std::byte> entries(64);
    request_bytes request;
    encode_bind({key, {}, 64, 0x700000000000}, qpn, {}, entries, request);
    mlx5_wqe_umr_ctrl_seg umr;
    mlx5_wqe_mkey_context_seg context;
    std::memcpy(&umr, request.bytes.data() + 16, sizeof(umr));
    std::memcpy(&context, request.bytes.data() + 64, sizeof(context));
    EXPECT_EQ(be64toh(umr.mkey_mask), mask | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
    EXPECT_EQ(be64toh(context.start_addr), 0x700000000000);
    EXPECT_EQ(context.access_flags, 0);
}

TEST(umr_request, pointer_follows_the_key_context)
{
    request_bytes request;
    ASSERT_TRUE(encode_bind_by_pointer({key, {}, 64, std::nullopt}, qpn, {}, 65535 * 16, 0x55, 0x9000, request));
    ASSERT_EQ(request.size, 144);
    struct {
        std::uint32_t reserved, lkey;
        std::uint64_t address;
    } expected{0, htobe32(0x55), htobe64(0x9000)};
    EXPECT_EQ(hex(request.bytes.data() + 128, 16), hex(&expected, 16));
    mlx5_wqe_umr_ctrl_seg umr;
    std::memcpy(&umr, request.bytes.data() + 16, sizeof(umr));
    EXPECT_EQ(umr.flags, 0);
    EXPECT_EQ(be16toh(umr.klm_octowords), 65535);
    EXPECT_FALSE(encode_bind_by_pointer({key, {}, 64, std::nullopt}, qpn, {}, 65536 * 16, 0x55, 0x9000, request));
}

TEST(umr_request, invalidation_sets_free_and_nothing_else)
{
    request_bytes request;
    encode_invalidate(key, qpn, {}, request);
    expected_head head = head_of(128, MLX5_OPCODE_UMR, 0);
    head.umr.flags     = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
    head.umr.mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY);
    head.context.free  = MLX5_WQE_MKEY_CONTEXT_FREE;
    ASSERT_EQ(request.size, sizeof(head));
    EXPECT_EQ(hex(request.bytes.data(), sizeof(head)), hex(&head, sizeof(head)));
}

struct unfit {
    const char* name;
    resolved_entry entry;
    const char* field;
};

void PrintTo(const unfit& one, std::ostream* out)
{
    *out << one.name;
}

class value_too_wide : public ::testing::TestWithParam<unfit>
{
};

TEST_P(value_too_wide, is_refused_by_name_and_never_cut)
{
    std::vector<std::byte> encoded(64);
    const auto done = encode_entries(key_kind::repeat, 2, std::span(&GetParam().entry, 1), encoded);
    ASSERT_FALSE(done.has_value());
    EXPECT_NE(done.error().message.find(GetParam().field), std::string::npos) << done.error().message;
}

INSTANTIATE_TEST_SUITE_P(umr_request, value_too_wide,
                         ::testing::Values(unfit{"stride", {1, 0, 8, 65536}, "stride"},
                                           unfit{"block", {1, 0, 65536, 8}, "length of a block"}));

TEST(umr_request, says_what_a_device_has_to_be_able_to_do)
{
    const std::vector<resolved_entry> entries{{0x100, 0x7f0000001000, 64, 128}};
    const auto bound = [&](key_kind kind, const bind_request& wanted, const request_flags& flags) {
        std::vector<std::byte> encoded(entries_bytes(kind, entries.size()));
        EXPECT_TRUE(encode_entries(kind, 2, entries, encoded));
        request_bytes request;
        encode_bind(wanted, qpn, flags, encoded, request);
        return needs_of(request);
    };
    bind_request wanted{.key = key, .rights = {.local_write = true}, .length = 64, .start_address = {}};
    EXPECT_EQ(bound(key_kind::klm, wanted, {.leaves_atomic_right = true}), "list");
    EXPECT_EQ(bound(key_kind::klm, wanted, {}), "list, atomic right");
    wanted.start_address = 0x1000;
    EXPECT_EQ(bound(key_kind::repeat, wanted, {.leaves_atomic_right = true}), "repeat block, start address");
    request_bytes request;
    ASSERT_TRUE(encode_bind_by_pointer(wanted, qpn, {}, 64, 0x100, 0x7f0000002000, request));
    EXPECT_EQ(needs_of(request), "list in memory, start address, atomic right");
    encode_invalidate(key, qpn, {}, request);
    EXPECT_EQ(needs_of(request), "invalidation");
    encode_key_fence(qpn, {}, request);
    EXPECT_EQ(needs_of(request), "fence");
}

TEST(umr_request, inline_room_counts_the_header_of_a_repeat_block)
{
    EXPECT_EQ(max_inline_entries(key_kind::klm), 52);
    EXPECT_EQ(max_inline_entries(key_kind::repeat), 51);
    EXPECT_EQ(max_inline_entries(key_kind::klm, 192), 4);
    EXPECT_EQ(max_inline_entries(key_kind::klm, 191), 0);
    EXPECT_EQ(max_inline_entries(key_kind::repeat, 100), 0);
}

} // namespace
} // namespace ucxl::test
