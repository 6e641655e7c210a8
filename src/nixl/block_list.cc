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
    _fingerprint = (_fingerprint ^ offset ^ length << 40) * 0x9fb21c651e98df25u;
    _fingerprint ^= _fingerprint >> 32;
    if (!_blocks.empty()) {
        auto& last = _blocks.back();
        if (last.source == source && static_cast<std::uint64_t>(last.offset) + last.element.length == offset) {
            last.element.length += length;
            return;
        }
    }
    _blocks.push_back({.source  = source,
                       .offset  = static_cast<std::ptrdiff_t>(offset),
                       .element = {.length = length, .layout = nullptr}});
}

bool block_list::operator==(const block_list& other) const
{
    const auto is_same = [](const ucx_layout::layout::iov& one, const ucx_layout::layout::iov& two) {
        return one.offset == two.offset && one.element.length == two.element.length && one.source == two.source;
    };
    return _fingerprint == other._fingerprint && _length == other._length && _regions == other._regions &&
           std::ranges::equal(_blocks, other._blocks, is_same);
}

} // namespace ucxl::nixl
