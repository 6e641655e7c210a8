// Writes the wire form to any sink with put(std::uint8_t): a buffer, a counter, the content hash.
//
//     layout  = 'L' 'N' version flags numbers
//     numbers = nodes entries [root.source root.offset] node... [set source_bounds...]
//     node    = 2 * length                                      a block
//             | 2 * count + 1, entries, entry...                a loop
//     entry   = source, back, offset, [stride]                  stride only where count > 1
//
// Numbers are LEB128 of minimal length; signed numbers are zigzag coded. `back` counts nodes backwards from the node
// before this one. Offset and stride are differences from the entry before; the first entry counts from 0. Source
// bounds follow for sources whose lb or ub differ from their bytes (flag 1), in ascending order: {source, lb, ub - lb}.
//
// The wire form holds nothing derived, and each layout has exactly one wire form.
#pragma once

#include "layout.h"

namespace ucxl::wire
{

inline constexpr std::uint8_t magic[]         = {'L', 'N'};
inline constexpr std::uint8_t version         = 1;
inline constexpr std::uint8_t flag_has_bounds = 1;

constexpr std::uint64_t zigzag(std::int64_t value)
{
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value)
{
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

inline bool has_set_bounds(const layout_bounds& bounds)
{
    return bounds.lb != bounds.true_lb || bounds.ub != bounds.true_ub;
}

template <typename Sink>
void put_number(Sink& sink, std::uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        sink.put(static_cast<std::uint8_t>(value | 0x80));
    }
    sink.put(static_cast<std::uint8_t>(value));
}

template <typename Sink>
void put_loop(Sink& sink, const layout& layout, std::size_t index)
{
    const layout_node& node = layout.nodes()[index];
    layout_entry before;
    put_number(sink, 2 * node.count + 1);
    put_number(sink, node.num_entries);
    for (const layout_entry& entry : layout.entries_of(node)) {
        put_number(sink, entry.source);
        put_number(sink, index - 1 - entry.child);
        put_number(sink, zigzag(entry.offset - before.offset));
        if (node.count > 1) {
            put_number(sink, zigzag(entry.stride - before.stride));
        }
        before = entry;
    }
}

template <typename Sink>
void put_bounds(Sink& sink, const layout& layout, std::uint32_t number)
{
    put_number(sink, number);
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        const layout_bounds& bounds = layout.bounds(source);
        if (has_set_bounds(bounds)) {
            put_number(sink, source);
            put_number(sink, zigzag(bounds.lb));
            put_number(sink, static_cast<std::uint64_t>(bounds.extent()));
        }
    }
}

template <typename Sink>
void encode(const layout& layout, Sink& sink)
{
    std::uint32_t num_set = 0;
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        num_set += has_set_bounds(layout.bounds(source)) ? 1 : 0;
    }
    sink.put(magic[0]);
    sink.put(magic[1]);
    sink.put(version);
    sink.put(num_set > 0 ? flag_has_bounds : 0);
    put_number(sink, layout.nodes().size());
    put_number(sink, layout.entries().size());
    if (!layout.is_empty()) {
        put_number(sink, layout.root().source);
        put_number(sink, zigzag(layout.root().offset));
    }
    for (std::size_t i = 0; i < layout.nodes().size(); ++i) {
        if (layout.nodes()[i].is_block()) {
            put_number(sink, 2 * layout.nodes()[i].packed_length);
        } else {
            put_loop(sink, layout, i);
        }
    }
    if (num_set > 0) {
        put_bounds(sink, layout, num_set);
    }
}

} // namespace ucxl::wire
