// The worked examples of the literature on non-contiguous registration, with their numbers, through real requests: a
// peer reads and writes, a send gathers, a receive scatters.
#include "key_test.h"

#include <array>
#include <cstring>
#include <functional>

namespace ucxl::test
{
namespace
{

class worked_keys : public key_test
{
protected:
    // Every kind of request must see these offsets of the memory, in this order; writes must change only them.
    void expect_shows(uct_mlx5_layout_region_h region, buffer& memory, const std::vector<std::size_t>& offsets)
    {
        const auto attr = about(region);
        ASSERT_EQ(attr.length, offsets.size());
        std::vector<std::uint8_t> expected;
        for (const std::size_t offset : offsets) {
            expected.push_back(memory.bytes[offset]);
        }
        const auto packed = zeroed(offsets.size());
        const ibv_sge all = packed->piece(0, offsets.size());
        const ibv_sge key{attr.address, static_cast<std::uint32_t>(attr.length), attr.lkey};
        ASSERT_EQ(pair.read(all, attr.address, attr.rkey), IBV_WC_SUCCESS);
        EXPECT_EQ(packed->bytes, expected) << "read by a peer";
        std::fill(packed->bytes.begin(), packed->bytes.end(), 0);
        ASSERT_EQ(pair.send(key, all), IBV_WC_SUCCESS);
        EXPECT_EQ(packed->bytes, expected) << "gathered by a send";

        const auto writes = [&](const char* address, const std::function<ibv_wc_status()>& move) {
            std::vector<std::uint8_t> after = memory.bytes;
            for (std::size_t i = 0; i < offsets.size(); ++i) {
                packed->bytes[i]  = static_cast<std::uint8_t>(packed->bytes[i] * 7 + i);
                after[offsets[i]] = packed->bytes[i];
            }
            ASSERT_EQ(move(), IBV_WC_SUCCESS) << address;
            EXPECT_EQ(memory.bytes, after) << address;
        };
        writes("written by a peer", [&] { return pair.write(all, attr.address, attr.rkey); });
        writes("scattered by a receive", [&] { return pair.send(all, key); });
    }

    static std::vector<std::size_t> strided_offsets(std::size_t length, std::size_t stride, std::size_t count)
    {
        std::vector<std::size_t> offsets;
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t byte = 0; byte < length; ++byte) {
                offsets.push_back(i * stride + byte);
            }
        }
        return offsets;
    }
};

struct strided_example {
    const char* name;
    std::uint32_t length;
    std::int64_t stride;
    std::uint64_t count;
};

void PrintTo(const strided_example& one, std::ostream* out)
{
    *out << one.name;
}

class strided_keys : public worked_keys, public ::testing::WithParamInterface<strided_example>
{
};

TEST_P(strided_keys, show_their_blocks)
{
    const strided_example& example = GetParam();
    const auto memory = patterned(static_cast<std::size_t>(example.stride) * example.count + example.length);
    uct_mlx5_layout_dim_t dim{example.count, example.stride};
    uct_mlx5_layout_item_t item{memory->piece(0, example.length), 1, &dim, 1};
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    EXPECT_TRUE(about(region).num_keys == 1 || !has_repeat_blocks());
    expect_shows(region, *memory,
                 strided_offsets(example.length, static_cast<std::size_t>(example.stride),
                                 static_cast<std::size_t>(example.count)));
}

INSTANTIATE_TEST_SUITE_P(layout_keys, strided_keys,
                         ::testing::Values(strided_example{"8_of_64_x_8", 8, 64, 8},
                                           strided_example{"512_of_3072", 512, 3072, 6},
                                           strided_example{"8_of_48_x_100", 8, 48, 100},
                                           strided_example{"column_of_8_kB_rows", 8, 8192, 1024}));

TEST_F(worked_keys, sub_matrix_of_three_dimensions)
{
    constexpr std::size_t m = 24, n = 16, planes = 10; // floats: rows of m, planes of n rows
    constexpr std::size_t a = 5, b = 7, c = 4;         // of the part
    const auto memory = patterned(4 * m * n * planes);
    const std::array<uct_mlx5_layout_dim_t, 3> dims{{{c, 4 * m * n}, {b, 4 * m}, {a, 4}}};
    uct_mlx5_layout_item_t item{memory->piece(0, 4), 1, dims.data(), 3};
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    std::vector<std::size_t> offsets;
    for (std::size_t z = 0; z < c; ++z) {
        for (std::size_t y = 0; y < b; ++y) {
            for (std::size_t x = 0; x < 4 * a; ++x) {
                offsets.push_back(z * 4 * m * n + y * 4 * m + x);
            }
        }
    }
    expect_shows(region, *memory, offsets);
}

// X Y Z of one array, R G B of another, S T of a third, six times.
TEST_F(worked_keys, vertices_3_3_2_in_six_cycles)
{
    constexpr std::size_t cycles = 6;
    const auto memory            = patterned(4096);
    const std::array<std::size_t, 3> starts{0, 1024, 2048};
    const std::array<std::uint32_t, 3> per_cycle{3, 3, 2};
    std::array<uct_mlx5_layout_dim_t, 3> dims{};
    std::array<uct_mlx5_layout_item_t, 3> items{};
    for (std::size_t i = 0; i < 3; ++i) {
        dims[i]  = {cycles * per_cycle[i], 4};
        items[i] = {memory->piece(starts[i], 4), per_cycle[i], &dims[i], 1};
    }
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 3, items.data()), UCS_OK);
    std::vector<std::size_t> offsets;
    for (std::size_t cycle = 0; cycle < cycles; ++cycle) {
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t byte = 0; byte < 4 * per_cycle[i]; ++byte) {
                offsets.push_back(starts[i] + 4 * per_cycle[i] * cycle + byte);
            }
        }
    }
    expect_shows(region, *memory, offsets);
}

TEST_F(worked_keys, list_of_pieces_one_of_them_another_region)
{
    const auto memory = patterned(4096);
    uct_mlx5_layout_dim_t dim{4, 64};
    uct_mlx5_layout_item_t item{memory->piece(1024, 16), 1, &dim, 1};
    uct_mlx5_layout_region_h column = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(column, 0, 1, &item), UCS_OK);
    const auto inner = about(column);
    std::array<ibv_sge, 4> pieces{memory->piece(0, 100), ibv_sge{inner.address + 8, 40, inner.lkey},
                                  memory->piece(3000, 1), memory->piece(200, 0)};
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
    EXPECT_EQ(about(region).depth, 2);
    std::vector<std::size_t> offsets = strided_offsets(100, 0, 1);
    const auto column_offsets        = strided_offsets(16, 64, 4);
    for (std::size_t i = 8; i < 48; ++i) {
        offsets.push_back(1024 + column_offsets[i]);
    }
    offsets.push_back(3000);
    expect_shows(region, *memory, offsets);
}

TEST_F(worked_keys, bound_on_the_callers_queue_pair_and_used_there_at_once)
{
    const auto memory = patterned(4096);
    uct_mlx5_layout_dim_t dim{50, 48};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, &dim, 1};
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &item), UCS_OK);
    EXPECT_EQ(about(region).length, 0);
    ASSERT_EQ(uct_mlx5_layout_post_bind(pair.qp(), &region, 1, 77, 1), UCS_OK);
    const ibv_wc bound = pair.wait();
    EXPECT_EQ(bound.status, IBV_WC_SUCCESS);
    EXPECT_EQ(bound.wr_id, 77);
    expect_shows(region, *memory, strided_offsets(8, 48, 50));
}

TEST_F(worked_keys, set_again_shows_the_new_layout_and_invalidated_none)
{
    const auto memory               = patterned(4096);
    uct_mlx5_layout_region_h region = new_region();
    for (const std::uint64_t offset : {0, 128}) {
        std::array<ibv_sge, 2> pieces{memory->piece(offset, 30), memory->piece(offset + 1000, 30)};
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
        std::vector<std::size_t> offsets;
        for (const std::size_t start : {offset, offset + 1000}) {
            for (std::size_t i = 0; i < 30; ++i) {
                offsets.push_back(start + i);
            }
        }
        expect_shows(region, *memory, offsets);
    }
    ASSERT_EQ(uct_mlx5_layout_invalidate(&region, 1), UCS_OK);
    EXPECT_EQ(about(region).length, 0);
    const auto packed = zeroed(60);
    EXPECT_EQ(pair.read(packed->piece(0, 60), 0, about(region).rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(worked_keys, region_at_an_address_is_reached_there)
{
    constexpr std::uint64_t address = 0x700000000000;
    const auto memory               = patterned(4096);
    uct_mlx5_layout_dim_t dim{8, 64};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, &dim, 1};
    uct_mlx5_layout_region_h region = new_region(64, address);
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    EXPECT_EQ(about(region).address, address);
    expect_shows(region, *memory, strided_offsets(8, 64, 8));
}

TEST_F(worked_keys, atomics_reach_an_item_inside_a_layout)
{
    need_atomics();
    if (IsSkipped()) {
        return;
    }
    const auto memory = zeroed(4096);
    const auto result = zeroed(8);
    uct_mlx5_layout_dim_t dim{8, 64};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, &dim, 1};
    uct_mlx5_layout_region_h region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    for (const std::uint64_t addend : {5, 7}) {
        ASSERT_EQ(pair.fetch_add(result->piece(0, 8), 3 * 8, about(region).rkey, addend), IBV_WC_SUCCESS);
    }
    std::uint64_t sum = 0;
    std::memcpy(&sum, memory->bytes.data() + 3 * 64, 8);
    EXPECT_EQ(sum, 12);
}

} // namespace
} // namespace ucxl::test
