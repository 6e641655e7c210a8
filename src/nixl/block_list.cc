#include "block_list.h"

#include <algorithm>

namespace ucxl::nixl
{

std::uint32_t block_list::source_of(region_id region)
{
    // Most blocks are in the region of the block before.
    if (!_blocks.empty() && _regions[_blocks.back().source] == region) {
        return _blocks.back().source;
    }
    const auto [place, is_new] = _sources.try_emplace(region, static_cast<std::uint32_t>(_regions.size()));
    if (is_new) {
        _regions.push_back(region);
    }
    return place->second;
}

void block_list::add(region_id region, std::uint64_t offset, std::uint64_t length)
{
    if (length == 0) {
        return;
    }
    const std::uint32_t source = source_of(region);
    _length += length;
    if (!_blocks.empty()) {
        block& last = _blocks.back();
        if (last.source == source && last.offset + last.length == offset) {
            last.length += length;
            return;
        }
    }
    _blocks.push_back({.offset = offset, .length = length, .source = source});
}

ucx_layout::result<ucx_layout::layout> block_list::describe() const
{
    std::vector<ucx_layout::layout::iov> parts(_blocks.size());
    std::ranges::transform(_blocks, parts.begin(), [](const block& each) {
        return ucx_layout::layout::iov{.source  = each.source,
                                       .offset  = static_cast<std::ptrdiff_t>(each.offset),
                                       .element = {.length = each.length, .layout = nullptr}};
    });
    return ucx_layout::layout::concatenate(parts);
}

} // namespace ucxl::nixl
