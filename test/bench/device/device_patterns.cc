// Caches whose blocks lie in one pool each, in random order: the layouts are lists, with one entry a block.
#include "device_patterns.h"

#include "examples/demo/patterns/parts.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace ucxl::bench
{

namespace
{

using examples::pattern;
using examples::pattern_side;

constexpr std::size_t block_bytes = 1024;

// Each side has its own order. The seeds are fixed, so that runs can be compared.
pattern_side cache_side(std::size_t num_blocks, unsigned seed)
{
    const std::size_t slots = num_blocks + num_blocks / 4;
    std::vector<std::size_t> order(slots);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, std::mt19937(seed));
    order.resize(num_blocks);
    const auto layout = [order] {
        std::vector<ucp_layout_iov_t> blocks;
        for (const std::size_t slot : order) {
            blocks.push_back({0, static_cast<std::ptrdiff_t>(slot * block_bytes), {block_bytes, nullptr}});
        }
        return examples::list_of(blocks);
    };
    const auto blocks = [order] {
        std::vector<examples::block> all;
        for (const std::size_t slot : order) {
            all.push_back({0, slot * block_bytes, block_bytes});
        }
        return all;
    };
    return {.array_bytes = {slots * block_bytes}, .base_offsets = {0}, .make_layout = layout, .blocks = blocks};
}

pattern cache(std::string name, std::size_t num_blocks)
{
    return {.name        = std::move(name),
            .description = "blocks of 1 KiB of one pool, in random order",
            .send        = cache_side(num_blocks, 1),
            .receive     = cache_side(num_blocks, 2),
            .pack        = {},
            .unpack      = {}};
}

} // namespace

examples::pattern_list device_patterns()
{
    examples::pattern_list all = examples::all_patterns();
    all.push_back(cache("kv-cache-10^4", 10'000));
    all.push_back(cache("kv-cache-10^5", 100'000));
    return all;
}

} // namespace ucxl::bench
