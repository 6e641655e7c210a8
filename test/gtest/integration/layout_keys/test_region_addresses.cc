// Regions at a virtual address, by both ways.
#include <array>

#include "key_test.h"

namespace ucxl::test
{
namespace
{

constexpr std::uint64_t first_byte = 0x700000000000 + 24;

class region_addresses : public key_test
{
protected:
    bool has_overlays() const { return found().address_method == UCT_MLX5_LAYOUT_ADDRESS_KSM; }

    uct_mlx5_layout_domain_attr_t found() const
    {
        uct_mlx5_layout_domain_attr_t attr{};
        attr.field_mask =
            UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_MAX_DEPTH | UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_ADDRESS_METHOD;
        EXPECT_EQ(uct_mlx5_layout_domain_query(domain, &attr), UCS_OK);
        return attr;
    }

    ibv_wc_status write(const buffer& packed, std::size_t length, std::uint64_t to, std::uint32_t rkey)
    {
        const auto status = pair.write(packed.piece(0, length), to, rkey);
        if (status != IBV_WC_SUCCESS) {
            pair.reconnect();
        }
        return status;
    }
};

TEST_F(region_addresses, layouts_of_any_length_are_reached_there_under_one_key)
{
    const auto memory = zeroed(8192);
    const auto packed = patterned(4096);
    const auto region = new_region(64, first_byte);
    const auto key    = about(region).rkey;
    for (const std::size_t length : {100, 3000, 40}) {
        std::fill(memory->bytes.begin(), memory->bytes.end(), 0);
        const std::array pieces{memory->piece(1, length / 2), memory->piece(4096, length - length / 2)};
        ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()), UCS_OK);
        EXPECT_EQ(about(region).rkey, key);
        EXPECT_EQ(about(region).address, first_byte);
        EXPECT_EQ(about(region).depth, has_overlays() ? 2 : 1);
        ASSERT_EQ(write(*packed, length, first_byte, key), IBV_WC_SUCCESS);
        for (std::size_t i = 0; i < length; ++i) {
            ASSERT_EQ(memory->bytes[i < length / 2 ? 1 + i : 4096 + i - length / 2], packed->bytes[i]) << i;
        }
        EXPECT_EQ(write(*packed, 1, first_byte - 1, key), IBV_WC_REM_ACCESS_ERR);
        EXPECT_EQ(write(*packed, 2, first_byte + length - 1, key), IBV_WC_REM_ACCESS_ERR);
        EXPECT_EQ(write(*packed, 1, 0, key), IBV_WC_REM_ACCESS_ERR);
    }
    ASSERT_EQ(uct_mlx5_layout_invalidate(&region, 1), UCS_OK);
    EXPECT_EQ(write(*packed, 1, first_byte, key), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(region_addresses, rights_are_those_of_the_region)
{
    const auto memory   = zeroed(64);
    const auto packed   = patterned(64);
    const auto region   = new_region(64, first_byte, IBV_ACCESS_REMOTE_READ);
    const ibv_sge piece = memory->piece(0, 64);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
    EXPECT_EQ(write(*packed, 8, first_byte, about(region).rkey), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(pair.read(packed->piece(0, 8), first_byte, about(region).rkey), IBV_WC_SUCCESS);
    const ibv_sge own{first_byte, 8, about(region).lkey};
    EXPECT_EQ(pair.send(own, packed->piece(0, 8)), IBV_WC_SUCCESS);
    EXPECT_NE(pair.send(packed->piece(0, 8), own), IBV_WC_SUCCESS) << "no right to write locally";
}

TEST_F(region_addresses, a_region_lies_over_another_by_its_address)
{
    const auto memory    = zeroed(4096);
    const auto packed    = patterned(16);
    const auto lower     = new_region(64, first_byte);
    const ibv_sge pieces = memory->piece(100, 200);
    ASSERT_EQ(uct_mlx5_layout_set_sg(lower, 0, 1, &pieces), UCS_OK);
    const auto upper = new_region();
    const ibv_sge part{first_byte + 50, 16, about(lower).lkey};
    ASSERT_EQ(uct_mlx5_layout_set_sg(upper, 0, 1, &part), UCS_OK);
    EXPECT_EQ(about(upper).depth, has_overlays() ? 3 : 2);
    ASSERT_EQ(write(*packed, 16, 0, about(upper).rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(packed->bytes.begin(), packed->bytes.end(), memory->bytes.begin() + 150));
}

TEST_F(region_addresses, what_reaches_past_the_last_address_is_refused)
{
    const auto memory   = zeroed(4096);
    const auto region   = new_region(64, ~std::uint64_t{0} - 100);
    const ibv_sge fits  = memory->piece(0, 100);
    const ibv_sge wraps = memory->piece(0, 102);
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &fits), UCS_OK);
    logs().expect("are over the limit of 100");
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &wraps), UCS_ERR_EXCEEDS_LIMIT);
}

TEST_F(region_addresses, an_overlay_shows_126_gib_and_no_more)
{
    // The memory is not accessed: the layout is only prepared.
    const auto memory = zeroed(64);
    const auto region = new_region(64, first_byte);
    std::vector<ibv_sge> all(63, {memory->address(), 1U << 31, memory->mr->lkey});
    const auto set = [&] {
        return uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, all.size(), all.data());
    };
    EXPECT_EQ(set(), UCS_OK);
    all.push_back({memory->address(), 1, memory->mr->lkey});
    if (has_overlays()) {
        logs().expect("are over the limit of 135291469824");
    }
    EXPECT_EQ(set(), has_overlays() ? UCS_ERR_EXCEEDS_LIMIT : UCS_OK);
}

} // namespace
} // namespace ucxl::test
