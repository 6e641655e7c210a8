// Base of the tests of layout keys: a connected pair, a domain on it, and regions that end with the test.
#pragma once

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/check.h"
#include "support/log_guard.h"
#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::test
{

inline constexpr unsigned every_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

inline constexpr std::uint64_t every_attr =
    UCT_MLX5_LAYOUT_ATTR_FIELD_FLAGS | UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_SG |
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_SG | UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_INTERLEAVED |
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_INLINE_NUM_INTERLEAVED | UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_NUM_DIMS |
    UCT_MLX5_LAYOUT_ATTR_FIELD_MAX_DEPTH;

inline constexpr std::uint64_t every_region_attr =
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY |
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH |
    UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_COST | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_WHOLE_WORDS;

class key_test : public ucx_test
{
protected:
    void SetUp() override
    {
        uct_mlx5_layout_domain_params_t params{};
        params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        params.pd         = pair.pd();
        ASSERT_EQ(uct_mlx5_layout_domain_open(&params, &domain), UCS_OK);
    }

    void TearDown() override
    {
        for (uct_mlx5_layout_region_h region : _regions) {
            uct_mlx5_layout_region_destroy(region);
        }
        if (domain != nullptr) {
            uct_mlx5_layout_domain_close(domain);
        }
    }

    std::uint64_t domain_flags() const
    {
        uct_mlx5_layout_domain_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_DOMAIN_ATTR_FIELD_FLAGS;
        check_ok(uct_mlx5_layout_domain_query(domain, &attr), "uct_mlx5_layout_domain_query");
        return attr.flags;
    }

    bool has_atomics() const { return (domain_flags() & UCT_MLX5_LAYOUT_CAP_ATOMIC) != 0; }

    bool has_repeat_blocks() const { return (domain_flags() & UCT_MLX5_LAYOUT_CAP_REPEAT_BLOCK) != 0; }

    // For tests of atomic operations: ends the test where the device does none through keys.
    void need_atomics() const
    {
        if (!has_atomics()) {
            GTEST_SKIP() << "the device does no atomic operations through keys";
        }
    }

    // Without the right to atomic operations where the device has none through keys.
    uct_mlx5_layout_region_h new_region(std::uint32_t max_entries = 64, std::uint64_t address = 0,
                                        unsigned access = every_access)
    {
        uct_mlx5_layout_region_params_t params{};
        params.field_mask = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS | UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES |
                            UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ADDRESS;
        params.access                   = has_atomics() ? access : access & ~IBV_ACCESS_REMOTE_ATOMIC;
        params.max_entries              = max_entries;
        params.address                  = address;
        uct_mlx5_layout_region_h region = nullptr;
        check_ok(uct_mlx5_layout_region_create(domain, &params, &region), "uct_mlx5_layout_region_create");
        _regions.push_back(region);
        return region;
    }

    static uct_mlx5_layout_region_attr_t about(uct_mlx5_layout_region_h region)
    {
        uct_mlx5_layout_region_attr_t attr{};
        attr.field_mask = every_region_attr;
        EXPECT_EQ(uct_mlx5_layout_region_query(region, &attr), UCS_OK);
        return attr;
    }

    uct_mlx5_layout_attr_t capabilities() const
    {
        uct_mlx5_layout_attr_t attr{};
        attr.field_mask = every_attr;
        EXPECT_EQ(uct_mlx5_layout_query(pair.context(), &attr), UCS_OK);
        return attr;
    }

    // Registered bytes 0, 1, 2, ... modulo a prime.
    struct buffer {
        std::vector<std::uint8_t> bytes;
        ibv_mr* mr;

        std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(bytes.data()); }
        ibv_sge piece(std::uint64_t offset, std::size_t length) const
        {
            return {address() + offset, static_cast<std::uint32_t>(length), mr->lkey};
        }
    };

    std::unique_ptr<buffer> patterned(std::size_t size)
    {
        auto created = std::make_unique<buffer>();
        created->bytes.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            created->bytes[i] = static_cast<std::uint8_t>(i % 251 + 1);
        }
        created->mr = pair.registered(created->bytes.data(), size);
        return created;
    }

    std::unique_ptr<buffer> zeroed(std::size_t size)
    {
        auto created = std::make_unique<buffer>();
        created->bytes.resize(size);
        created->mr = pair.registered(created->bytes.data(), size);
        return created;
    }

    verbs_pair pair;
    uct_mlx5_layout_domain_h domain = nullptr;

private:
    std::vector<uct_mlx5_layout_region_h> _regions;
};

} // namespace ucxl::test
