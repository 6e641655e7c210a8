#include "tile.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ucxl
{

namespace
{

// Less than this stays in the first-level cache from one iteration to the next, and pieces of transports are longer.
constexpr std::uint64_t min_cycle = 1024;

// Whether it is a loop over blocks, or more loops, that are in lines of their own.
bool touches_many_lines(const layout& layout, const layout_node& node)
{
    return !node.is_block() && node.num_entries == 1 && magnitude(layout.entries_of(node).front().stride) >= cache_line;
}

// Of a loop whose iterations touch the same lines: the packed bytes of some iterations.
std::uint64_t tile_of(const layout& layout, const layout_node& loop)
{
    const layout_entry& entry  = layout.entries_of(loop).front();
    const std::uint64_t stride = magnitude(entry.stride), cycle = loop.cycle_length;
    if (stride == 0 || stride > cache_line / 2 || cycle < min_cycle || cycle > max_tile_length / 2 ||
        !touches_many_lines(layout, layout.nodes()[entry.child])) {
        return 0;
    }
    return cycle * std::min({cache_line / stride, loop.count, max_tile_length / cycle});
}

} // namespace

std::uint64_t tile_length(const layout& layout)
{
    std::uint64_t longest = 0;
    for (const layout_node& node : layout.nodes()) {
        if (!node.is_block() && node.num_entries == 1) {
            longest = std::max(longest, tile_of(layout, node));
        }
    }
    return longest;
}

void tile::start(std::uint64_t length)
{
    _begin = _end = 0;
    _length       = length;
}

bool tile::is_used()
{
    if (_length > 0 && _buffer == nullptr) {
        _buffer.reset(new (std::nothrow) buffer);
        _length = _buffer == nullptr ? 0 : _length;
    }
    return _length > 0;
}

std::uint64_t tile::rest(const side& memory, std::uint64_t offset) const
{
    return std::min(_length - offset % _length, memory.length - offset);
}

void tile::read(const side& memory, std::uint64_t offset, std::uint64_t length, std::byte* to)
{
    for (std::uint64_t done = 0, part = 0; done < length; done += part) {
        part = std::min(length - done, rest(memory, offset + done));
        read_part(memory, offset + done, part, to + done);
    }
}

void tile::read_part(const side& memory, std::uint64_t offset, std::uint64_t length, std::byte* to)
{
    if (offset < _begin || offset + length > _end) {
        const std::uint64_t first = offset - offset % _length;
        const std::uint64_t whole = std::min(_length, memory.length - first);
        if (length == whole) {
            memory.plan.gather(memory.bases, first, whole, to);
            return;
        }
        memory.plan.gather(memory.bases, first, whole, _buffer->bytes);
        _begin = first;
        _end   = first + whole;
    }
    std::memcpy(to, _buffer->bytes + (offset - _begin), length);
}

void tile::write(const side& memory, std::uint64_t offset, std::uint64_t length, const std::byte* from)
{
    for (std::uint64_t done = 0, part = 0; done < length; done += part) {
        part = std::min(length - done, rest(memory, offset + done));
        write_part(memory, offset + done, part, from + done);
    }
}

void tile::write_part(const side& memory, std::uint64_t offset, std::uint64_t length, const std::byte* from)
{
    const bool is_last = length == rest(memory, offset);
    if (offset != _end) { // not the next piece
        flush(memory);
        _begin = _end = offset;
    }
    if (is_last && _begin == _end) {
        memory.plan.scatter(memory.bases, offset, length, from);
        _begin = _end = offset + length;
        return;
    }
    std::memcpy(_buffer->bytes + (offset - _begin), from, length);
    _end += length;
    if (is_last) {
        flush(memory);
    }
}

void tile::flush(const side& memory)
{
    if (_end > _begin) {
        memory.plan.scatter(memory.bases, _begin, _end - _begin, _buffer->bytes);
        _begin = _end;
    }
}

} // namespace ucxl
