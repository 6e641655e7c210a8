// Many regions: bound in one batch, and by several threads on one domain.
#include <array>
#include <mutex>
#include <thread>

#include "key_test.h"

namespace ucxl::test
{
namespace
{

class many_keys : public key_test
{
protected:
    void expect_bytes(uct_mlx5_layout_region_h region, const buffer& memory, std::size_t first, std::size_t second)
    {
        const auto packed = zeroed(16);
        ASSERT_EQ(pair.read(packed->piece(0, 16), 0, about(region).rkey), IBV_WC_SUCCESS);
        for (std::size_t i = 0; i < 8; ++i) {
            EXPECT_EQ(packed->bytes[i], memory.bytes[first + i]);
            EXPECT_EQ(packed->bytes[8 + i], memory.bytes[second + i]);
        }
    }
};

TEST_F(many_keys, more_regions_than_the_bind_queue_holds_are_bound_by_one_call)
{
    const auto memory = patterned(8192);
    std::vector<uct_mlx5_layout_region_h> regions;
    for (std::size_t i = 0; i < 300; ++i) {
        regions.push_back(new_region(4));
        const std::array<ibv_sge, 2> pieces{memory->piece(i * 20, 8), memory->piece(8000 - i * 20, 8)};
        ASSERT_EQ(uct_mlx5_layout_set_sg(regions.back(), UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 2, pieces.data()), UCS_OK);
    }
    ASSERT_EQ(uct_mlx5_layout_bind(regions.data(), regions.size()), UCS_OK);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        expect_bytes(regions[i], *memory, i * 20, 8000 - i * 20);
    }
    ASSERT_EQ(uct_mlx5_layout_invalidate(regions.data(), regions.size()), UCS_OK);
    for (uct_mlx5_layout_region_h region : regions) {
        EXPECT_EQ(about(region).length, 0);
    }
}

TEST_F(many_keys, threads_set_their_regions_on_one_domain)
{
    constexpr std::size_t threads = 4;
    constexpr std::size_t rounds  = 100;
    const auto memory             = patterned(8192);
    std::vector<uct_mlx5_layout_region_h> regions;
    for (std::size_t i = 0; i < threads; ++i) {
        regions.push_back(new_region(4));
    }
    std::mutex transfers; // one pair of queues for all
    std::vector<std::jthread> running;
    for (std::size_t t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            for (std::size_t round = 0; round < rounds; ++round) {
                const std::size_t first  = (t * 1000 + round * 8) % 4000;
                const std::size_t second = 4000 + (round * 24 + t * 16) % 4000;
                const std::array<ibv_sge, 2> pieces{memory->piece(first, 8), memory->piece(second, 8)};
                ASSERT_EQ(uct_mlx5_layout_set_sg(regions[t], 0, 2, pieces.data()), UCS_OK);
                const std::lock_guard guard(transfers);
                expect_bytes(regions[t], *memory, first, second);
            }
        });
    }
}

} // namespace
} // namespace ucxl::test
