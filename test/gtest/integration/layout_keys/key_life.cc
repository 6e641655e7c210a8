#include "key_life.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::test
{

namespace
{

constexpr std::size_t num_pieces  = 200; // more than a bind request or the region's own key holds
constexpr std::size_t piece_bytes = 24;
constexpr std::size_t distance    = 100;

// Irregular, so that only a list can describe them.
constexpr std::size_t start_of(std::size_t piece)
{
    return piece * distance + piece * piece % 61;
}

struct life {
    verbs_pair& pair;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(num_pieces * distance, 1);
    std::vector<std::uint8_t> packed = std::vector<std::uint8_t>(num_pieces * piece_bytes, 2);
    uct_mlx5_layout_domain_h domain  = nullptr;
    uct_mlx5_layout_region_h region  = nullptr;
    bool tried_again                 = false;

    bool bind(std::uint32_t lkey)
    {
        uct_mlx5_layout_domain_params_t domain_params{};
        domain_params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        domain_params.pd         = pair.pd();
        uct_mlx5_layout_region_params_t params{};
        params.field_mask  = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS | UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_MAX_ENTRIES;
        params.access      = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        params.max_entries = 64;
        std::array<ibv_sge, num_pieces> pieces;
        for (std::size_t i = 0; i < num_pieces; ++i) {
            pieces[i] = {reinterpret_cast<std::uintptr_t>(&memory[start_of(i)]), piece_bytes, lkey};
        }
        if (uct_mlx5_layout_domain_open(&domain_params, &domain) != UCS_OK ||
            uct_mlx5_layout_region_create(domain, &params, &region) != UCS_OK) {
            return false;
        }
        // Set twice: the second call removes the first layout. What failed once must work when it is tried again.
        return set_within_two_tries(std::span(pieces).first(3)) && set_within_two_tries(pieces);
    }

    bool set_within_two_tries(std::span<const ibv_sge> pieces)
    {
        return uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()) == UCS_OK ||
               (tried_again = true, uct_mlx5_layout_set_sg(region, 0, pieces.size(), pieces.data()) == UCS_OK);
    }

    bool write(std::uint32_t lkey)
    {
        uct_mlx5_layout_region_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY;
        return uct_mlx5_layout_region_query(region, &attr) == UCS_OK &&
               pair.write(
                   {reinterpret_cast<std::uintptr_t>(packed.data()), static_cast<std::uint32_t>(packed.size()), lkey},
                   attr.address, attr.rkey) == IBV_WC_SUCCESS;
    }

    bool is_right() const
    {
        std::vector<std::uint8_t> expected(memory.size(), 1);
        for (std::size_t i = 0; i < num_pieces; ++i) {
            std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(start_of(i)), piece_bytes, 2);
        }
        return memory == expected;
    }
};

int live(verbs_pair& pair)
{
    life one{pair};
    const ibv_mr* const memory = pair.registered(one.memory.data(), one.memory.size());
    const ibv_mr* const packed = pair.registered(one.packed.data(), one.packed.size());
    int result                 = key_life_refused;
    if (one.bind(memory->lkey) && one.write(packed->lkey)) {
        result = !one.is_right() ? key_life_wrong : one.tried_again ? key_life_recovered : key_life_complete;
        if (uct_mlx5_layout_invalidate(&one.region, 1) != UCS_OK) {
            result = key_life_refused;
        }
    }
    uct_mlx5_layout_region_destroy(one.region);
    uct_mlx5_layout_domain_close(one.domain);
    return result;
}

} // namespace

int key_life()
{
    std::optional<verbs_pair> pair;
    try {
        pair.emplace();
        pair->set_patience(std::chrono::milliseconds(1500));
        const int result = live(*pair);
        if (pair->close()) {
            return result;
        }
        return result == key_life_complete ? key_life_left : key_life_wrong;
    } catch (const std::runtime_error& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        return key_life_no_setup;
    }
}

} // namespace ucxl::test
