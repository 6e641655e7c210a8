// A place in a program: a leaf, the leaf's place, and how many of its packed bytes lie behind. It moves from leaf to
// leaf in packed order.
//
// Invariant: before the end, `skip` is less than the packed length of the leaf. The cursor allocates nothing. Seeking
// divides once per loop level; moving on never divides.
//
// Example: program_cursor at(program, offset); at.leaf(); ...; at.advance(bytes);
#pragma once

#include "program.h"

#include <algorithm>
#include <array>

namespace ucxl
{

class program_cursor
{
public:
    // packed_offset is less than the packed length of the program.
    program_cursor(const compiled_program& program, std::uint64_t packed_offset) : _program(program)
    {
        descend(program.root.child, program.root.source, program.root.offset, packed_offset);
    }

    const compiled_program& program() const { return _program; }
    const step& leaf() const { return *_leaf; }
    std::uint32_t source() const { return _source; }
    std::int64_t offset() const { return _offset; }
    std::uint64_t skip() const { return _skip; }
    std::uint64_t left() const { return _leaf->packed_length - _skip; }

    // length <= left(). After the last byte of the program the cursor may only be destroyed.
    void advance(std::uint64_t length)
    {
        _skip += length;
        if (_skip == _leaf->packed_length) {
            next_leaf();
        }
    }

private:
    struct frame {
        const loop_step* loop;
        std::uint64_t iteration;
        std::int64_t offset; // of the loop
        std::uint32_t source;
        std::uint32_t link;
    };

    void descend(std::uint32_t child, std::uint32_t source, std::int64_t offset, std::uint64_t skip)
    {
        const step* at = &_program.steps[child];
        while (const loop_step* const loop = as<loop_step>(*at)) {
            frame& top = _frames[_depth++];
            top        = {loop, 0, offset, source, 0};
            if (skip > 0) {
                top.iteration = skip / loop->cycle_length;
                skip -= top.iteration * loop->cycle_length;
                top.link = link_of(*loop, skip);
            }
            const step_link& link = _program.links[loop->first + top.link];
            skip -= std::min(skip, link.packed_offset);
            source += link.source;
            offset += link.offset + static_cast<std::int64_t>(top.iteration) * link.stride;
            at = &_program.steps[link.child];
        }
        _leaf   = at;
        _source = source;
        _offset = offset;
        _skip   = skip;
    }

    std::uint32_t link_of(const loop_step& loop, std::uint64_t packed_offset) const
    {
        const step_link* first = &_program.links[loop.first];
        const step_link* found =
            std::upper_bound(first, first + loop.size, packed_offset,
                             [](std::uint64_t at, const step_link& link) { return at < link.packed_offset; });
        return static_cast<std::uint32_t>(found - first - 1);
    }

    void next_leaf()
    {
        while (_depth > 0) {
            frame& top = _frames[_depth - 1];
            if (++top.link == top.loop->size) {
                top.link = 0;
                ++top.iteration;
            }
            if (top.iteration < top.loop->count) {
                const step_link& link = _program.links[top.loop->first + top.link];
                descend(link.child, top.source + link.source,
                        top.offset + link.offset + static_cast<std::int64_t>(top.iteration) * link.stride, 0);
                return;
            }
            --_depth;
        }
    }

    const compiled_program& _program;
    const step* _leaf     = nullptr;
    std::int64_t _offset  = 0;
    std::uint64_t _skip   = 0;
    std::uint32_t _source = 0;
    unsigned _depth       = 0;
    std::array<frame, limits::max_depth> _frames;
};

} // namespace ucxl
