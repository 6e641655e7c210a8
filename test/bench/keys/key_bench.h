// What the benchmarks of layout keys share: owners of domains and regions that end the program when something fails,
// and the transfer they measure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::bench
{

inline void check(bool worked, const char* what)
{
    if (!worked) {
        throw std::runtime_error(what);
    }
}

// The cache of an inference engine on its way to another one: blocks from all over the memory.
namespace kv_cache
{
inline constexpr std::size_t blocks        = 112000;
inline constexpr std::uint32_t block_bytes = 2048;
} // namespace kv_cache

class key_domain
{
public:
    explicit key_domain(const test::verbs_pair& pair)
    {
        uct_mlx5_layout_domain_params_t params{};
        params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        params.pd         = pair.pd();
        check(uct_mlx5_layout_domain_open(&params, &_domain) == UCS_OK, "domain");
    }
    ~key_domain() { uct_mlx5_layout_domain_close(_domain); }
    key_domain(const key_domain&)            = delete;
    key_domain& operator=(const key_domain&) = delete;

    uct_mlx5_layout_domain_h get() const { return _domain; }

private:
    uct_mlx5_layout_domain_h _domain = nullptr;
};

class key_region
{
public:
    key_region(const key_domain& domain, std::size_t entries)
    {
        uct_mlx5_layout_region_params_t params{};
        params.field_mask  = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES;
        params.max_entries = static_cast<std::uint32_t>(entries);
        check(uct_mlx5_layout_region_create(domain.get(), &params, &_region) == UCS_OK, "region");
    }
    ~key_region() { uct_mlx5_layout_region_destroy(_region); }
    key_region(const key_region&)            = delete;
    key_region& operator=(const key_region&) = delete;

    void set(std::span<const ibv_sge> pieces) const
    {
        check(uct_mlx5_layout_set_sg(_region, UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION, pieces.size(), pieces.data()) ==
                  UCS_OK,
              "set");
    }

    std::uint32_t lkey() const
    {
        uct_mlx5_layout_region_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY;
        check(uct_mlx5_layout_region_query(_region, &attr) == UCS_OK, "asking a region");
        return attr.lkey;
    }

private:
    uct_mlx5_layout_region_h _region = nullptr;
};

} // namespace ucxl::bench
