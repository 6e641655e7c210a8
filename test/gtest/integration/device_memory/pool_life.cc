#include "pool_life.h"

#include <array>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "counted_addresses.h"
#include "support/verbs_pair.h"
#include "uct/ib/mlx5/domain/memic_pool.h"
#include "uct/ib/mlx5/layout/api_support.h"

namespace ucxl::test
{

namespace
{

using namespace mlx5;

struct domain_closer {
    void operator()(uct_mlx5_layout_domain_h domain) const { uct_mlx5_layout_domain_close(domain); }
};
using domain_owner = std::unique_ptr<uct_mlx5_layout_domain, domain_closer>;

domain_owner open_domain(const verbs_pair& pair)
{
    uct_mlx5_layout_domain_params_t params{};
    params.field_mask             = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
    params.pd                     = pair.pd();
    uct_mlx5_layout_domain_h made = nullptr;
    if (uct_mlx5_layout_domain_open(&params, &made) != UCS_OK) {
        throw std::runtime_error("no domain");
    }
    return domain_owner(made);
}

bool is_same(const memic_statistics& one, const memic_statistics& other)
{
    return one.chunks == other.chunks && one.allocations == other.allocations && one.bytes == other.bytes &&
           one.free_bytes == other.free_bytes;
}

class life
{
public:
    struct request {
        std::uint64_t length;
        memic_sharing sharing;
    };
    static constexpr std::array requests{request{8, memic_sharing::shared}, request{100, memic_sharing::shared},
                                         request{20000, memic_sharing::shared}, // more than a chunk
                                         request{24, memic_sharing::exclusive}};

    life(verbs_pair& pair, memic_pool& pool, const counted_addresses& addresses)
        : _pair(pair), _pool(pool), _addresses(addresses)
    {
        std::iota(_buffer.begin(), _buffer.end(), std::uint8_t{1});
        _registered = _pair.registered(_buffer.data(), _buffer.size());
    }

    pool_life_result live()
    {
        for (int round = 0; round < 2; ++round) {
            std::vector<std::byte*> made;
            for (const auto& [length, sharing] : requests) {
                const auto memory = allocate(length, sharing);
                if (!memory) {
                    return _is_unchanged ? pool_life_refused : pool_life_wrong;
                }
                if (!use(*memory)) {
                    return pool_life_wrong;
                }
                made.push_back(memory->address);
            }
            for (std::byte* const address : made) {
                if (!_pool.release(address)) {
                    return pool_life_wrong;
                }
            }
        }
        return _has_tried_again ? pool_life_recovered : pool_life_complete;
    }

private:
    // What failed once must work when it is tried again, and has changed nothing.
    std::optional<memic_allocation> allocate(std::uint64_t length, memic_sharing sharing)
    {
        const memic_statistics before = _pool.statistics();
        const std::uint64_t reserved  = _addresses.bytes;
        const auto first              = _pool.allocate(length, sharing);
        if (first) {
            return *first;
        }
        _has_tried_again = true;
        std::fprintf(stderr, "%s\n", first.error().message.c_str());
        const bool has_spare = before.chunks != 0 && before.allocations == 0; // which it may have given up
        if (!has_spare && (!is_same(before, _pool.statistics()) || reserved != _addresses.bytes)) {
            _is_unchanged = false;
            return std::nullopt;
        }
        const auto second = _pool.allocate(length, sharing);
        return second ? std::optional(*second) : std::nullopt;
    }

    bool use(const memic_allocation& memory)
    {
        constexpr std::uint32_t length = 8;
        std::array<std::uint8_t, length> found{};
        const ibv_sge from{reinterpret_cast<std::uintptr_t>(_buffer.data()), length, _registered->lkey};
        const auto address = reinterpret_cast<std::uintptr_t>(memory.address) + memory.length - length;
        return _pair.write(from, address, memory.key) == IBV_WC_SUCCESS &&
               _pool.copy_out(memory.address + memory.length - length, length, found.data()) &&
               std::equal(found.begin(), found.end(), _buffer.begin());
    }

    verbs_pair& _pair;
    memic_pool& _pool;
    const counted_addresses& _addresses;
    std::array<std::uint8_t, 64> _buffer{};
    ibv_mr* _registered   = nullptr;
    bool _has_tried_again = false;
    bool _is_unchanged    = true; // by calls that failed
};

// What the device can still give out, in pages.
std::size_t free_pages(ibv_context* context)
{
    ibv_alloc_dm_attr page{};
    page.length = 4096;
    std::vector<ibv_dm*> all;
    while (ibv_dm* const made = ibv_alloc_dm(context, &page)) {
        all.push_back(made);
    }
    for (ibv_dm* const one : all) {
        ibv_free_dm(one);
    }
    return all.size();
}

pool_life_result live(verbs_pair& pair, domain& domain)
{
    counted_addresses addresses;
    pool_life_result ended = pool_life_wrong;
    {
        const auto pool = memic_pool::create(domain, addresses, {.chunk_bytes = 8192});
        if (!pool) {
            std::fprintf(stderr, "%s\n", pool.error().message.c_str());
            return pool_life_no_setup;
        }
        ended = life(pair, **pool, addresses).live();
    }
    return addresses.bytes == 0 ? ended : pool_life_wrong;
}

} // namespace

int pool_life()
{
    try {
        verbs_pair pair;
        pair.set_patience(std::chrono::milliseconds(1500));
        const std::size_t pages = free_pages(pair.context());
        int result              = pool_life_wrong;
        {
            const domain_owner domain = open_domain(pair);
            result                    = live(pair, domain->value);
        }
        const bool has_memory = free_pages(pair.context()) == pages;
        if (pair.close() && has_memory) {
            return result;
        }
        return result == pool_life_complete ? pool_life_left : pool_life_wrong;
    } catch (const std::runtime_error& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        return pool_life_no_setup;
    }
}

} // namespace ucxl::test
