// Compares our requests byte for byte with those that libmlx5's own calls leave in the send queue.
#include <array>
#include <cstring>

#include "key_test.h"
#include "libmlx5_queue.h"
#include "uct/ib/mlx5/layout/umr_request.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

class golden_requests : public key_test
{
protected:
    // The bytes that a call leaves at the start of the empty send queue. The doorbell is never rung.
    template <typename Call>
    std::vector<std::uint8_t> written_by(const Call& call, std::size_t size)
    {
        ibv_qp_ex* const extended = ibv_qp_to_qp_ex(_queue.qp());
        ibv_wr_start(extended);
        extended->wr_id    = 1;
        extended->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
        call(mlx5dv_qp_ex_from_ibv_qp_ex(extended));
        ibv_wr_abort(extended);
        mlx5dv_qp queue{};
        mlx5dv_obj wanted{};
        wanted.qp.in  = _queue.qp();
        wanted.qp.out = &queue;
        EXPECT_EQ(mlx5dv_init_obj(&wanted, MLX5DV_OBJ_QP), 0);
        std::vector<std::uint8_t> bytes(size);
        std::memcpy(bytes.data(), queue.sq.buf, size);
        return bytes;
    }

    std::vector<std::uint8_t> ours(key_kind kind, std::uint32_t turns, std::span<const resolved_entry> entries,
                                   std::uint64_t length)
    {
        std::vector<std::byte> encoded(entries_bytes(kind, entries.size()));
        EXPECT_TRUE(encode_entries(kind, turns, entries, encoded).has_value());
        request_bytes request;
        encode_bind({_queue.key()->lkey, {true, true, true, false}, length, std::nullopt}, _queue.qp()->qp_num,
                    {.signaled = true}, encoded, request);
        std::vector<std::uint8_t> bytes(request.size);
        std::memcpy(bytes.data(), request.bytes.data(), request.size);
        return bytes;
    }

    static constexpr unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

    libmlx5_queue _queue{pair.pd(), MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST, 16};
};

TEST_F(golden_requests, list_is_that_of_wr_mr_list)
{
    const auto memory = zeroed(4096);
    std::array<ibv_sge, 5> pieces;
    std::array<resolved_entry, 5> entries;
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        pieces[i]  = memory->piece(i * 300, 10 + i);
        entries[i] = {pieces[i].lkey, pieces[i].addr, pieces[i].length, 0};
        length += pieces[i].length;
    }
    const auto expected = ours(key_kind::klm, 1, entries, length);
    EXPECT_EQ(written_by([&](mlx5dv_qp_ex* qp) { mlx5dv_wr_mr_list(qp, _queue.key(), access, 5, pieces.data()); },
                         expected.size()),
              expected);
}

TEST_F(golden_requests, repeat_block_is_that_of_wr_mr_interleaved)
{
    const auto memory = zeroed(4096);
    std::array<mlx5dv_mr_interleaved, 2> parts{};
    parts[0] = {memory->address(), 12, 20, memory->mr->lkey};
    parts[1] = {memory->address() + 2048, 4, 4, memory->mr->lkey};
    const std::array<resolved_entry, 2> entries{
        {{memory->mr->lkey, memory->address(), 12, 32}, {memory->mr->lkey, memory->address() + 2048, 4, 8}}};
    const auto expected = ours(key_kind::repeat, 60, entries, 60 * 16);
    EXPECT_EQ(
        written_by([&](mlx5dv_qp_ex* qp) { mlx5dv_wr_mr_interleaved(qp, _queue.key(), access, 60, 2, parts.data()); },
                   expected.size()),
        expected);
}

} // namespace
} // namespace ucxl::test
