#include "overlap.h"

#include "walk.h"

#include <algorithm>
#include <vector>

namespace ucxl
{

namespace
{

// All blocks, sorted: two neighbours in memory share a byte or no two blocks do.
overlap by_enumeration(const layout& of)
{
    std::vector<placed_block> blocks;
    blocks.reserve(of.blocks().count);
    for_each_block(of, 0, of.packed_length(), [&](const placed_block& block) { blocks.push_back(block); });
    std::ranges::sort(blocks, [](const placed_block& a, const placed_block& b) {
        return a.source != b.source ? a.source < b.source : a.offset < b.offset;
    });
    for (std::size_t i = 1; i < blocks.size(); ++i) {
        const placed_block& before = blocks[i - 1];
        if (before.source == blocks[i].source &&
            before.offset + static_cast<std::int64_t>(before.length) > blocks[i].offset) {
            return overlap::some;
        }
    }
    return overlap::none;
}

} // namespace

overlap find_overlap(const layout& of)
{
    if (of.is_contiguous()) {
        return overlap::none;
    }
    return of.blocks().count <= limits::max_overlap_steps ? by_enumeration(of) : overlap::maybe;
}

} // namespace ucxl
