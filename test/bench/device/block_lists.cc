#include "block_lists.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ucxl::bench
{

block_cursor::block_cursor(std::span<const memory_block> blocks) : _blocks(blocks)
{
    for (const memory_block& one : blocks) {
        _length += one.length;
    }
}

void block_cursor::seek(std::size_t offset)
{
    if (offset < _offset) {
        _block = _into = _offset = 0;
    }
    while (_block < _blocks.size() && offset - _offset >= _blocks[_block].length - _into) {
        _offset += _blocks[_block].length - _into;
        _into = 0;
        ++_block;
    }
    _into += offset - _offset;
    _offset = offset;
}

template <typename Fn>
std::size_t block_cursor::move(std::size_t offset, std::size_t length, Fn&& copy)
{
    seek(offset);
    std::size_t done = 0;
    while (done < length && _block < _blocks.size()) {
        const memory_block& block = _blocks[_block];
        const std::size_t part    = std::min(length - done, block.length - _into);
        copy(block.begin + _into, done, part);
        done += part;
        _into += part;
        if (_into == block.length) {
            ++_block;
            _into = 0;
        }
    }
    _offset += done;
    return done;
}

std::size_t block_cursor::gather(std::size_t offset, std::span<std::byte> to)
{
    return move(offset, to.size(), [&](const std::byte* memory, std::size_t at, std::size_t part) {
        std::memcpy(to.data() + at, memory, part);
    });
}

void block_cursor::scatter(std::size_t offset, std::span<const std::byte> from)
{
    move(offset, from.size(),
         [&](std::byte* memory, std::size_t at, std::size_t part) { std::memcpy(memory, from.data() + at, part); });
}

std::vector<common_piece> common_pieces(const examples::pattern& exchanged)
{
    const std::vector<examples::block> sent = exchanged.send.blocks(), arrived = exchanged.receive.blocks();
    std::vector<common_piece> pieces;
    auto from = sent.begin(), to = arrived.begin();
    std::size_t from_done = 0, to_done = 0;
    while (from != sent.end() && to != arrived.end()) {
        const common_piece next{.from_array  = from->array,
                                .from_offset = from->offset_bytes + from_done,
                                .to_array    = to->array,
                                .to_offset   = to->offset_bytes + to_done,
                                .length      = std::min(from->length_bytes - from_done, to->length_bytes - to_done)};
        common_piece* const last = pieces.empty() ? nullptr : &pieces.back();
        if (last != nullptr && last->from_array == next.from_array && last->to_array == next.to_array &&
            last->from_offset + last->length == next.from_offset && last->to_offset + last->length == next.to_offset) {
            last->length += next.length;
        } else {
            pieces.push_back(next);
        }
        from_done += next.length;
        to_done += next.length;
        if (from_done == from->length_bytes) {
            ++from;
            from_done = 0;
        }
        if (to_done == to->length_bytes) {
            ++to;
            to_done = 0;
        }
    }
    if (from != sent.end() || to != arrived.end()) {
        throw std::runtime_error(exchanged.name + ": the sides have different lengths");
    }
    return pieces;
}

} // namespace ucxl::bench
