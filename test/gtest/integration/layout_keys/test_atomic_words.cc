// Which words of a region atomic operations reach, and what happens to operations on others.
#include <array>
#include <cstring>

#include "key_test.h"

namespace ucxl::test
{
namespace
{

class atomic_words : public key_test
{
protected:
    void SetUp() override
    {
        key_test::SetUp();
        need_atomics();
    }

    uct_mlx5_layout_region_h region_of(std::span<const ibv_sge> pieces, std::uint64_t address = 0)
    {
        const auto region = new_region(64, address);
        EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
        return region;
    }

    // The device's result of adding 1 there.
    ibv_wc_status add(uct_mlx5_layout_region_h region, std::uint64_t address)
    {
        const auto result = zeroed(8);
        const auto status = pair.fetch_add(result->piece(0, 8), address, about(region).rkey, 1);
        if (status != IBV_WC_SUCCESS) {
            pair.reconnect();
        }
        return status;
    }

    void expect_word(uct_mlx5_layout_region_h region, std::uint64_t address)
    {
        EXPECT_EQ(uct_mlx5_layout_region_check_atomic(region, address), UCS_OK) << address;
        EXPECT_EQ(add(region, address), IBV_WC_SUCCESS) << address;
    }

    void expect_no_word(uct_mlx5_layout_region_h region, std::uint64_t address, const char* reason)
    {
        logs().expect(reason);
        EXPECT_EQ(uct_mlx5_layout_region_check_atomic(region, address), UCS_ERR_INVALID_PARAM) << address;
        EXPECT_NE(add(region, address), IBV_WC_SUCCESS) << address;
    }

    std::uint64_t word_at(const buffer& memory, std::size_t offset)
    {
        std::uint64_t word = 0;
        std::memcpy(&word, memory.bytes.data() + offset, sizeof(word));
        return word;
    }
};

// One that is not refused is asked for ever, or until the stack ends.
TEST_F(atomic_words, no_region_over_itself)
{
    const auto memory = patterned(64);
    const auto lower  = region_of(std::array{memory->piece(0, 64)});
    const auto over   = [&](uct_mlx5_layout_region_h region) { return ibv_sge{0, 64, about(region).lkey}; };
    const auto upper  = region_of(std::array{over(lower)});
    logs().expect("leads back to the region's key");
    for (const auto& circle : {over(lower), over(upper)}) {
        EXPECT_EQ(uct_mlx5_layout_set_sg(lower, 0, 1, &circle), UCS_ERR_INVALID_PARAM);
    }
    expect_word(lower, 0);
    expect_word(upper, 0);
    EXPECT_EQ(about(upper).whole_words, 1);
}

TEST_F(atomic_words, no_region_over_one_that_is_set_over_it_for_later)
{
    const auto first  = new_region();
    const auto second = new_region();
    const auto over   = [&](uct_mlx5_layout_region_h region) { return ibv_sge{0, 64, about(region).lkey}; };
    const auto later  = over(second);
    EXPECT_EQ(uct_mlx5_layout_set_sg(first, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &later), UCS_OK);
    const auto circle = over(first);
    logs().expect("leads back to the region's key");
    EXPECT_EQ(uct_mlx5_layout_set_sg(second, 0, 1, &circle), UCS_ERR_INVALID_PARAM);
}

// Both regions of a level lie over both of the next one, so a word has many ways to memory.
TEST_F(atomic_words, of_regions_with_many_ways_down)
{
    const auto memory = patterned(64);
    std::array<std::array<uct_mlx5_layout_region_h, 2>, 40> levels;
    for (auto& level : levels) {
        level = {new_region(), new_region()};
    }
    // From the top down: the depth of those below is not known then.
    for (std::size_t i = 0; i < levels.size(); ++i) {
        for (const auto region : levels[i]) {
            std::array pieces{memory->piece(0, 8), memory->piece(8, 8)};
            for (std::size_t side = 0; i + 1 < levels.size() && side < 2; ++side) {
                pieces[side] = {0, 8, about(levels[i + 1][side]).lkey};
            }
            EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
        }
    }
    EXPECT_EQ(about(levels.front()[0]).whole_words, 1);
    EXPECT_EQ(uct_mlx5_layout_region_check_atomic(levels.front()[0], 8), UCS_OK);
}

TEST_F(atomic_words, every_word_of_aligned_blocks)
{
    const auto memory = zeroed(4096);
    const std::array pieces{memory->piece(64, 16), memory->piece(8, 8), memory->piece(1024, 24)};
    const auto region = region_of(pieces);
    EXPECT_EQ(about(region).whole_words, 1);
    for (std::uint64_t word = 0; word < 48; word += 8) {
        expect_word(region, word);
    }
    for (const std::size_t offset : {64, 72, 8, 1024, 1032, 1040}) {
        EXPECT_EQ(word_at(*memory, offset), 1) << offset;
    }
    expect_no_word(region, 4, "no multiple of 8");
    expect_no_word(region, 48, "not within the region's 48 bytes");
}

TEST_F(atomic_words, not_those_that_a_block_ends_in_or_that_memory_does_not_align)
{
    const auto memory = zeroed(4096);
    const std::array pieces{memory->piece(0, 8), memory->piece(64, 12), memory->piece(128, 12),
                            memory->piece(256 + 4, 8)};
    const auto region = region_of(pieces);
    EXPECT_EQ(about(region).whole_words, 0);
    expect_word(region, 0);
    expect_word(region, 8);
    expect_no_word(region, 16, "is split: a block ends after 4 bytes");
    expect_no_word(region, 24, "the word at 0x18 is at 0x");
    expect_no_word(region, 32, "the word at 0x20 is at 0x");
}

TEST_F(atomic_words, of_strided_blocks)
{
    const auto memory = zeroed(8192);
    uct_mlx5_layout_dim_t dim{8, 64};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, &dim, 1};
    const auto region = new_region();
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    EXPECT_EQ(about(region).whole_words, 1);
    expect_word(region, 24);
    EXPECT_EQ(word_at(*memory, 3 * 64), 1);
    dim.stride = 60;
    ASSERT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_OK);
    EXPECT_EQ(about(region).whole_words, 0);
    expect_word(region, 16);
    expect_no_word(region, 24, "which is no multiple of 8");
}

TEST_F(atomic_words, through_regions_over_regions)
{
    const auto memory = zeroed(4096);
    const std::array pieces{memory->piece(0, 12), memory->piece(96 + 4, 20)};
    const auto lower = region_of(pieces);
    const std::array parts{ibv_sge{16, 16, about(lower).lkey}, ibv_sge{8, 12, about(lower).lkey}};
    const auto upper = region_of(parts, 0x10000);
    EXPECT_EQ(about(upper).whole_words, 0);
    expect_word(upper, 0x10000);
    expect_word(upper, 0x10008);
    expect_no_word(upper, 0x10010, "is split");
    EXPECT_EQ(word_at(*memory, 104), 1);
    EXPECT_EQ(word_at(*memory, 112), 1);
}

TEST_F(atomic_words, need_a_region_with_the_right_and_a_layout)
{
    const auto memory   = zeroed(64);
    const ibv_sge piece = memory->piece(0, 64);
    const auto without  = new_region(64, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_EQ(uct_mlx5_layout_set_sg(without, 0, 1, &piece), UCS_OK);
    logs().expect("made without IBV_ACCESS_REMOTE_ATOMIC");
    EXPECT_EQ(uct_mlx5_layout_region_check_atomic(without, 0), UCS_ERR_UNSUPPORTED);
    EXPECT_NE(add(without, 0), IBV_WC_SUCCESS);
    logs().expect("has no layout");
    EXPECT_EQ(uct_mlx5_layout_region_check_atomic(new_region(), 0), UCS_ERR_INVALID_PARAM);
}

} // namespace
} // namespace ucxl::test
