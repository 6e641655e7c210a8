#include "walk.h"

namespace ucxl
{

block_cursor::block_cursor(const layout& layout) : _layout(layout)
{
    seek(0);
}

void block_cursor::seek(std::uint64_t packed_offset)
{
    _depth = 0;
    _end   = packed_offset >= _layout.packed_length();
    if (!_end) {
        descend(_layout.root().child, _layout.root().source, _layout.root().offset, packed_offset);
    }
}

bool block_cursor::at_end() const
{
    return _end;
}

placed_block block_cursor::block(std::uint64_t max_length) const
{
    return {_block.source, _block.offset, std::min(_block.length, max_length)};
}

void block_cursor::advance(std::uint64_t length)
{
    if (length < _block.length) {
        _block.offset += static_cast<std::int64_t>(length);
        _block.length -= length;
        return;
    }
    while (_depth > 0) {
        loop_state& level = _levels[_depth - 1];
        if (++level.entry == level.node->num_entries) {
            level.entry = 0;
            if (++level.iteration == level.node->count) {
                --_depth;
                continue;
            }
        }
        const layout_entry& entry = _layout.entries()[level.node->first_entry + level.entry];
        descend(entry.child, level.source + entry.source,
                level.offset + entry.offset + static_cast<std::int64_t>(level.iteration) * entry.stride, 0);
        return;
    }
    _end = true;
}

void block_cursor::descend(std::uint32_t child, std::uint32_t source, std::int64_t offset, std::uint64_t skip)
{
    for (const layout_node* node = &_layout.nodes()[child];; node = &_layout.nodes()[child]) {
        if (node->is_block()) {
            _block = {source, offset + static_cast<std::int64_t>(skip), node->packed_length - skip};
            return;
        }
        loop_state& level       = _levels[_depth++];
        level.node         = node;
        level.source       = source;
        level.offset       = offset;
        level.iteration    = 0;
        level.entry        = 0;
        const auto entries = _layout.entries_of(*node);
        if (skip > 0) {
            level.iteration = skip / node->cycle_length;
            skip -= level.iteration * node->cycle_length;
            const auto after = std::ranges::upper_bound(entries, skip, {}, &layout_entry::packed_offset);
            level.entry      = static_cast<std::uint32_t>(after - entries.begin()) - 1;
            skip -= entries[level.entry].packed_offset;
        }
        const layout_entry& entry = entries[level.entry];
        source += entry.source;
        offset += entry.offset + static_cast<std::int64_t>(level.iteration) * entry.stride;
        child = entry.child;
    }
}

} // namespace ucxl
