// Writes the wire form to any sink with put(std::uint64_t bytes, unsigned count), which takes the lowest `count` bytes,
// at most 8, the lowest one first; the others are 0. Sinks are a buffer, a comparison, the content hash.
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

#include <bit>

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

inline constexpr std::uint64_t goes_on = 0x8080808080808080; // the bits of bytes that are not the last one

// The groups of 7 bits of a number below 2^56, each in a byte of its own.
constexpr std::uint64_t spread(std::uint64_t value)
{
    value = (value & 0x0fffffff) | (value & 0x00fffffff0000000) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    return (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
}
static_assert(spread(0xaaaaaaaaaaaaaa) == 0x552a552a552a552a);

// Of a number below 2^56.
constexpr unsigned length_of_number(std::uint64_t value)
{
    return (static_cast<unsigned>(std::bit_width(value | 1)) + 6) / 7;
}

// Of a number below 2^56.
constexpr std::uint64_t bytes_of_number(std::uint64_t value, unsigned length)
{
    return spread(value) | (goes_on & ((std::uint64_t{1} << (8 * (length - 1))) - 1));
}

template <typename Sink>
void put_number(Sink& sink, std::uint64_t value)
{
    if (value >> 56 == 0) {
        const unsigned length = length_of_number(value);
        sink.put(bytes_of_number(value, length), length);
    } else {
        sink.put(spread(value & 0xffffffffffffff) | goes_on, 8);
        put_number(sink, value >> 56);
    }
}

// Most entries are few bytes: these are put at once.
template <typename Sink>
void put_place(Sink& sink, std::uint64_t source, std::uint64_t back, std::uint64_t offset)
{
    if (source < 0x80 && back < 0x80 && offset >> 42 == 0) {
        const unsigned length = length_of_number(offset);
        sink.put(source | back << 8 | bytes_of_number(offset, length) << 16, length + 2);
    } else {
        put_number(sink, source);
        put_number(sink, back);
        put_number(sink, offset);
    }
}

template <typename Sink>
void put_loop(Sink& sink, const layout& layout, std::size_t index)
{
    const layout_node& node = layout.nodes()[index];
    layout_entry before;
    put_number(sink, 2 * node.count + 1);
    put_number(sink, node.num_entries);
    for (const layout_entry& entry : layout.entries_of(node)) {
        put_place(sink, entry.source, index - 1 - entry.child, zigzag(entry.offset - before.offset));
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
    sink.put(magic[0], 1);
    sink.put(magic[1], 1);
    sink.put(version, 1);
    sink.put(num_set > 0 ? flag_has_bounds : 0, 1);
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
