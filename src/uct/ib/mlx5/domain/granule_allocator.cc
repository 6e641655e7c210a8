#include "granule_allocator.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

} // namespace

granule_allocator::granule_allocator(std::uint64_t length) : _length(length), _free_bytes(length)
{
    _blocks[0].length = length;
    _gaps.emplace(length, 0);
}

std::optional<granule_allocator::place> granule_allocator::place_for(std::uint64_t length) const
{
    const std::uint64_t alignment = length < line ? granule : line;
    for (auto gap = _gaps.lower_bound({length, 0}); gap != _gaps.end(); ++gap) {
        const auto [gap_length, gap_offset] = *gap;
        const std::uint64_t start           = aligned(gap_offset, alignment);
        if (start - gap_offset <= gap_length - length) {
            return place{gap_offset, start};
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> granule_allocator::take(std::uint64_t bytes)
{
    const std::uint64_t length = rounded(bytes);
    const auto found           = place_for(length);
    if (!found) {
        return std::nullopt;
    }
    cut(_blocks.find(found->gap), found->start, length);
    return found->start;
}

// The gap becomes a smaller gap (or none), the piece, and another gap (or none).
void granule_allocator::cut(blocks::iterator gap, std::uint64_t start, std::uint64_t length)
{
    const std::uint64_t offset = gap->first;
    const std::uint64_t before = start - offset;
    const std::uint64_t behind = gap->second.length - before - length;

    blocks front;
    blocks rest;
    gaps spare;
    if (before != 0) {
        front[start].length = length;
        spare.emplace(0, 0);
    }
    if (behind != 0) {
        rest[start + length].length = behind;
        spare.emplace(1, 0);
    }
    // Nothing below needs memory.
    auto node = _gaps.extract({gap->second.length, offset});
    if (behind != 0) {
        auto unused    = spare.extract(std::prev(spare.end()));
        unused.value() = {behind, start + length};
        _gaps.insert(std::move(unused));
        _blocks.insert(rest.extract(rest.begin()));
    }
    if (before != 0) {
        gap->second.length = before;
        node.value()       = {before, offset};
        _gaps.insert(std::move(node));
        node = spare.extract(spare.begin());
        gap  = _blocks.insert(front.extract(front.begin())).position;
    }
    gap->second.length = length;
    gap->second.parked = std::move(node);
    _free_bytes -= length;
    ++_num_pieces;
}

bool granule_allocator::give_back(std::uint64_t offset) noexcept
{
    auto found = _blocks.find(offset);
    if (found == _blocks.end() || found->second.parked.empty()) {
        return false;
    }
    _free_bytes += found->second.length;
    --_num_pieces;
    gaps::node_type node = std::move(found->second.parked);
    if (const auto next = std::next(found); next != _blocks.end() && next->second.parked.empty()) {
        _gaps.erase({next->second.length, next->first});
        found->second.length += next->second.length;
        _blocks.erase(next);
    }
    if (found != _blocks.begin()) {
        if (const auto previous = std::prev(found); previous->second.parked.empty()) {
            _gaps.erase({previous->second.length, previous->first});
            previous->second.length += found->second.length;
            _blocks.erase(found);
            found = previous;
        }
    }
    node.value() = {found->second.length, found->first};
    _gaps.insert(std::move(node));
    return true;
}

std::optional<granule_allocator::piece> granule_allocator::find(std::uint64_t offset, std::uint64_t bytes) const
{
    const auto behind = _blocks.upper_bound(offset);
    if (behind == _blocks.begin() || offset >= _length) {
        return std::nullopt;
    }
    const auto& [start, found] = *std::prev(behind);
    if (found.parked.empty() || bytes > found.length - (offset - start)) {
        return std::nullopt;
    }
    return piece{start, found.length};
}

} // namespace ucxl::mlx5
