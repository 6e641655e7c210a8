// What the library refuses by itself, with the field named, and what only the device can find.
#include <array>
#include <limits>
#include <vector>

#include "key_test.h"
#include "ucs/layout/build.h"
#include "ucs/layout/wire.h"

namespace ucxl::test
{
namespace
{

class key_errors : public key_test
{
protected:
    // A region over one piece of memory.
    uct_mlx5_layout_region_h region_over(const ibv_sge& piece, unsigned access = every_access)
    {
        uct_mlx5_layout_region_h region = new_region(64, 0, access);
        EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
        return region;
    }

    ibv_wc_status write_to(uct_mlx5_layout_region_h region, std::uint64_t offset, std::size_t length)
    {
        const auto packed = zeroed(length);
        const auto status = pair.write(packed->piece(0, length), offset, about(region).rkey);
        if (status != IBV_WC_SUCCESS) {
            pair.reconnect();
        }
        return status;
    }
};

TEST_F(key_errors, access_past_the_end_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000));
    EXPECT_EQ(write_to(region, 900, 100), IBV_WC_SUCCESS);
    EXPECT_EQ(write_to(region, 900, 101), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(write_to(region, std::numeric_limits<std::uint64_t>::max() - 3, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, region_without_the_right_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
    const auto packed = zeroed(8);
    EXPECT_EQ(pair.read(packed->piece(0, 8), 0, about(region).rkey), IBV_WC_SUCCESS);
}

TEST_F(key_errors, a_key_that_never_was_is_refused_by_the_device)
{
    const auto memory = zeroed(4096);
    const auto region = region_over({memory->address(), 1000, 0xabcdef00});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, memory_of_another_protection_domain_is_refused_by_the_device)
{
    verbs_pair other;
    std::vector<std::uint8_t> memory(4096);
    ibv_mr* const foreign = other.registered(memory.data(), memory.size());
    const auto region     = region_over({reinterpret_cast<std::uintptr_t>(memory.data()), 1000, foreign->lkey});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(key_errors, memory_deregistered_under_a_region_is_refused_by_the_device_and_the_region_lives_on)
{
    std::vector<std::uint8_t> memory(4096);
    ibv_mr* const short_lived = ibv_reg_mr(pair.pd(), memory.data(), memory.size(), static_cast<int>(every_access));
    const auto region         = region_over({reinterpret_cast<std::uintptr_t>(memory.data()), 1000, short_lived->lkey});
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS);
    ibv_dereg_mr(short_lived);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_REM_ACCESS_ERR);
    const auto lasting  = zeroed(100);
    const ibv_sge piece = lasting->piece(0, 100);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &piece), UCS_OK);
    EXPECT_EQ(write_to(region, 0, 100), IBV_WC_SUCCESS);
}

TEST_F(key_errors, regions_nest_as_deep_as_the_device_says_and_no_deeper)
{
    uct_mlx5_layout_attr_t caps;
    ASSERT_EQ(uct_mlx5_layout_query(pair.context(), &caps), UCS_OK);
    const auto memory = patterned(4096);
    ibv_sge piece     = memory->piece(0, 1000);
    for (std::uint32_t level = 1; level <= caps.max_mr_nesting_level; ++level) {
        const auto region = region_over(piece);
        EXPECT_EQ(about(region).depth, level);
        EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS) << "level " << level;
        piece = {0, 1000, about(region).lkey};
    }
    logs().expect("over the limit");
    EXPECT_EQ(uct_mlx5_layout_set_sg(new_region(), 0, 1, &piece), UCS_ERR_EXCEEDS_LIMIT);
}

TEST_F(key_errors, a_failed_set_leaves_the_layout_there_was)
{
    const auto memory = zeroed(4096);
    const auto region = region_over(memory->piece(0, 1000));
    logs().expect("no bytes");
    const ibv_sge nothing = memory->piece(0, 0);
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0, 1, &nothing), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(about(region).length, 1000);
    EXPECT_EQ(write_to(region, 0, 8), IBV_WC_SUCCESS);
}

TEST_F(key_errors, bad_parameters_are_named)
{
    const auto memory = zeroed(64);
    const auto region = new_region();
    uct_mlx5_layout_dim_t dim{8, 0};
    uct_mlx5_layout_item_t item{memory->piece(0, 8), 1, 1, &dim};
    logs().expect("items[0].dims[0].datum_count is 0");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    item.dims = nullptr;
    logs().expect("items[0].dims is NULL");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    item.num_repeated = 0;
    logs().expect("items[0].num_repeated is 0");
    EXPECT_EQ(uct_mlx5_layout_set_interleaved(region, 0, 1, &item), UCS_ERR_INVALID_PARAM);
    const ibv_sge piece = memory->piece(0, 8);
    logs().expect("flags 0x80 have unknown bits 0x80");
    EXPECT_EQ(uct_mlx5_layout_set_sg(region, 0x80, 1, &piece), UCS_ERR_INVALID_PARAM);
    logs().expect("regions[0] has no layout set with");
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_ERR_INVALID_PARAM);
    logs().expect("num_regions is 0");
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 0), UCS_ERR_INVALID_PARAM);

    uct_mlx5_layout_region_params_t params{};
    params.field_mask               = UCT_MLX5_LAYOUT_REGION_FIELD_MAX_ENTRIES;
    uct_mlx5_layout_region_h unmade = nullptr;
    for (const std::uint32_t entries : {0U, 65533U}) {
        params.max_entries = entries;
        logs().expect("max_entries " + std::to_string(entries) + " is not from 1 to");
        EXPECT_EQ(uct_mlx5_layout_region_create(domain, &params, &unmade), UCS_ERR_INVALID_PARAM);
    }
    params.field_mask = UCT_MLX5_LAYOUT_REGION_FIELD_ACCESS;
    params.access     = IBV_ACCESS_MW_BIND;
    logs().expect("access 0x10 has bits 0x10");
    EXPECT_EQ(uct_mlx5_layout_region_create(domain, &params, &unmade), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(unmade, nullptr);
}

TEST_F(key_errors, hostile_wire_forms_are_refused)
{
    const auto region = new_region();
    const auto of     = make_strided({8, nullptr}, std::array{dim{4, 64}});
    std::vector<std::byte> wire(wire_length(**of));
    ASSERT_TRUE(pack_wire(**of, wire).has_value());
    const auto memory = zeroed(4096);
    const uct_mlx5_layout_base_t base{memory->address(), memory->mr->lkey};
    logs().expect("0 bases for a layout of 1 sources");
    EXPECT_EQ(uct_mlx5_layout_set_wire(region, 0, wire.data(), wire.size(), &base, 0), UCS_ERR_INVALID_PARAM);
    logs().allow("uct_mlx5_layout_set_wire");
    for (std::size_t i = 0; i < wire.size(); ++i) {
        for (const std::byte other : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
            std::vector<std::byte> changed = wire;
            changed[i]                     = other;
            // Any status, never a crash; what is accepted was a layout.
            (void)uct_mlx5_layout_set_wire(region, 0, changed.data(), changed.size(), &base, 1);
        }
    }
    for (std::size_t size = 0; size < wire.size(); ++size) {
        EXPECT_NE(uct_mlx5_layout_set_wire(region, 0, wire.data(), size, &base, 1), UCS_OK) << size;
    }
}

TEST_F(key_errors, a_queue_pair_that_takes_no_raw_requests_is_refused)
{
    const auto memory   = zeroed(64);
    const auto region   = new_region();
    const ibv_sge piece = memory->piece(0, 64);
    ASSERT_EQ(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_WITH_POST_WR, 1, &piece), UCS_OK);
    ibv_cq* const cq = ibv_create_cq(pair.context(), 4, nullptr, nullptr, 0);
    ibv_qp_init_attr plain{};
    plain.qp_type    = IBV_QPT_RC;
    plain.send_cq    = cq;
    plain.recv_cq    = cq;
    plain.cap        = {4, 4, 1, 1, 0};
    ibv_qp* const qp = ibv_create_qp(pair.pd(), &plain);
    ASSERT_NE(qp, nullptr);
    logs().expect("not created for raw work requests");
    EXPECT_EQ(uct_mlx5_layout_post_bind(qp, &region, 1, 0, 1), UCS_ERR_UNSUPPORTED);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    // Nothing is lost: the layout is still there to be bound.
    EXPECT_EQ(uct_mlx5_layout_bind(&region, 1), UCS_OK);
    EXPECT_EQ(write_to(region, 0, 64), IBV_WC_SUCCESS);
}

} // namespace
} // namespace ucxl::test
