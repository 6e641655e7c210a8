// Writes the wire form to any sink with put(std::uint64_t bytes, unsigned count), which takes the lowest `count` bytes,
// at most 8, the lowest one first; the others are 0. room(count) gives a place for so many bytes, at most 1,024, or
// nullptr, and wrote(count) says how many of them were written. Sinks are a buffer and the content hash.
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

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

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

// What spread() was given.
constexpr std::uint64_t gathered(std::uint64_t spread)
{
    spread = (spread & 0x007f007f007f007f) | (spread & 0x7f007f007f007f00) >> 1;
    spread = (spread & 0x00003fff00003fff) | (spread & 0x3fff00003fff0000) >> 2;
    return (spread & 0x000000000fffffff) | (spread & 0x0fffffff00000000) >> 4;
}
static_assert(gathered(spread(0xaaaaaaaaaaaaaa)) == 0xaaaaaaaaaaaaaa);
static_assert(gathered(spread(0x55555555555555)) == 0x55555555555555);

// The next eight bytes, the first one lowest.
inline std::uint64_t word_at(const std::byte* bytes)
{
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return std::endian::native == std::endian::little ? word : std::byteswap(word);
}

// Eight bytes, the lowest one first.
inline void put_word(std::byte* bytes, std::uint64_t word)
{
    if constexpr (std::endian::native != std::endian::little) {
        word = std::byteswap(word);
    }
    std::memcpy(bytes, &word, sizeof(word));
}

// Of a number below 2^56.
constexpr unsigned length_of_number(std::uint64_t value)
{
    return (static_cast<unsigned>(std::bit_width(value | 1)) * 9 + 64) / 64; // as if divided by 7, rounded up
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

// The numbers of an entry as one word, which has room for most of them. The length is 0 for others.
struct short_place {
    std::uint64_t bytes = 0;
    unsigned length     = 0;
};

constexpr short_place as_short_place(std::uint64_t source, std::uint64_t back, std::uint64_t offset)
{
    if (source >= 0x80 || back >= 0x80 || offset >> 42 != 0) {
        return {};
    }
    const unsigned length = length_of_number(offset);
    return {source | back << 8 | bytes_of_number(offset, length) << 16, length + 2};
}

template <typename Sink>
void put_place(Sink& sink, std::uint64_t source, std::uint64_t back, std::uint64_t offset)
{
    if (const short_place place = as_short_place(source, back, offset); place.length > 0) {
        sink.put(place.bytes, place.length);
    } else {
        put_number(sink, source);
        put_number(sink, back);
        put_number(sink, offset);
    }
}

// Puts the first entries of a loop that runs once, as many as are short and have room. Returns how many.
template <typename Sink>
std::size_t put_short_places(Sink& sink, std::span<const layout_entry> entries, std::size_t node, std::int64_t before)
{
    const std::size_t most  = std::min<std::size_t>(entries.size(), 128);
    std::byte* const begin  = sink.room(8 * most);
    std::byte* at           = begin;
    std::size_t num_written = 0;
    for (; begin != nullptr && num_written < most; ++num_written) {
        const layout_entry& entry = entries[num_written];
        const short_place place   = as_short_place(entry.source, node - 1 - entry.child, zigzag(entry.offset - before));
        if (place.length == 0) {
            break;
        }
        put_word(at, place.bytes);
        at += place.length;
        before = entry.offset;
    }
    sink.wrote(static_cast<std::size_t>(at - begin));
    return num_written;
}

template <typename Sink>
void put_loop(Sink& sink, const layout& layout, std::size_t index)
{
    const layout_node& node = layout.nodes()[index];
    layout_entry before;
    put_number(sink, 2 * node.count + 1);
    put_number(sink, node.num_entries);
    for (std::span<const layout_entry> entries = layout.entries_of(node); !entries.empty();) {
        if (node.count == 1) {
            if (const std::size_t num_put = put_short_places(sink, entries, index, before.offset); num_put > 0) {
                before  = entries[num_put - 1];
                entries = entries.subspan(num_put);
                continue;
            }
        }
        const layout_entry& entry = entries[0];
        put_place(sink, entry.source, index - 1 - entry.child, zigzag(entry.offset - before.offset));
        if (node.count > 1) {
            put_number(sink, zigzag(entry.stride - before.stride));
        }
        before  = entry;
        entries = entries.subspan(1);
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
