#include "block_count.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "block_sequence.h"

namespace ucxl
{

namespace
{

// A byte's place relative to its node; the byte need not exist.
struct place {
    std::uint32_t source = 0;
    std::int64_t offset  = 0;
};

// A node with all its iterations.
struct counted_node {
    block_sequence blocks;
    place first; // its first byte
    place end;   // one past its last byte
};

enum class frequency : std::uint8_t { never, once, always };

// The iterations of a loop in which two blocks touch. Both blocks move by constant strides, so they touch in all
// iterations, in none, or in one.
struct meeting {
    frequency often         = frequency::never;
    std::uint64_t iteration = 0; // of `once`

    bool is_once() const { return often == frequency::once; }
    bool is_always() const { return often == frequency::always; }
};

// The blocks are `distance` apart in iteration 0, and `change` further apart in each later one. Looks at the first
// `count` iterations.
meeting meeting_of(std::int64_t distance, std::int64_t change, std::uint64_t count)
{
    if (change == 0) {
        return {distance == 0 ? frequency::always : frequency::never, 0};
    }
    const std::int64_t iteration = -(distance / change);
    if (distance % change != 0 || iteration < 0 || static_cast<std::uint64_t>(iteration) >= count) {
        return {};
    }
    return {frequency::once, static_cast<std::uint64_t>(iteration)};
}

// A list of block sequences, as a tree of joined halves. Any two neighbours can be made to touch.
class sequence_tree
{
public:
    explicit sequence_tree(std::span<const block_sequence> parts)
        : _num_leaves(std::bit_ceil(parts.size())), _nodes(2 * _num_leaves), _touches(_num_leaves)
    {
        std::ranges::copy(parts, _nodes.begin() + static_cast<std::ptrdiff_t>(_num_leaves));
        for (std::size_t node = _num_leaves; node-- > 1;) {
            update(node);
        }
    }

    const block_sequence& whole() const { return _nodes[1]; }

    // Sets whether the parts `part` and `part + 1` touch.
    void set(std::size_t part, bool touch)
    {
        _touches[part] = touch;
        for (std::size_t node = (_num_leaves + part) >> std::bit_width(part ^ (part + 1)); node > 0; node /= 2) {
            update(node);
        }
    }

private:
    void update(std::size_t node)
    {
        const unsigned height  = static_cast<unsigned>(std::bit_width(_num_leaves) - std::bit_width(node));
        const std::size_t last = ((2 * node + 1) << (height - 1)) - _num_leaves - 1; // of the left half
        _nodes[node]           = joined(_nodes[2 * node], _nodes[2 * node + 1], _touches[last]);
    }

    std::size_t _num_leaves;
    std::vector<block_sequence> _nodes; // _nodes[1] is the whole; the children of n are 2n and 2n + 1
    std::vector<bool> _touches;
};

// Counts the blocks of a loop. Most iterations are alike; in a few, parts touch that are apart in all others.
class loop_count
{
public:
    loop_count(const layout& layout, const layout_node& loop, std::span<const counted_node> nodes)
        : _count(loop.count), _entries(layout.entries_of(loop)), _nodes(nodes)
    {
    }

    counted_node run()
    {
        list_parts();
        // From the end of one iteration to the begin of the next.
        const std::int64_t first_stride = _entries.front().stride;
        const std::int64_t last_stride  = _entries.back().stride;
        const place begin               = first_of(_entries.front());
        const place end                 = end_of(_entries.back());
        if (begin.source == end.source) {
            _turn = meeting_of(begin.offset + first_stride - end.offset, first_stride - last_stride, _count - 1);
        }
        append_all();
        const std::int64_t travel = static_cast<std::int64_t>(_count - 1) * last_stride;
        return {_all, begin, {end.source, end.offset + travel}};
    }

private:
    // In this iteration only, the parts `part` and `part + 1` touch.
    struct event {
        std::uint64_t iteration;
        std::size_t part;
    };

    // The place in iteration 0.
    place first_of(const layout_entry& entry) const
    {
        const place& first = _nodes[entry.child].first;
        return {entry.source + first.source, entry.offset + first.offset};
    }

    place end_of(const layout_entry& entry) const
    {
        const place& end = _nodes[entry.child].end;
        return {entry.source + end.source, entry.offset + end.offset};
    }

    // How many entries from this one on are like the one before it and never touch it: most of long lists.
    std::size_t count_apart(std::size_t from) const
    {
        const layout_entry& like    = _entries[from - 1];
        const counted_node& child   = _nodes[like.child];
        const bool may_touch        = child.first.source == child.end.source;
        const std::int64_t distance = child.end.offset - child.first.offset; // at which two of them touch
        std::size_t i               = from;
        for (; i < _entries.size(); ++i) {
            const layout_entry& entry = _entries[i];
            if (!same_shape(entry, like) || (may_touch && entry.offset - _entries[i - 1].offset == distance)) {
                break;
            }
        }
        return i - from;
    }

    // Entries that join in the same way in every iteration form one part.
    void list_parts()
    {
        block_sequence part = _nodes[_entries[0].child].blocks;
        for (std::size_t i = 1; i < _entries.size(); ++i) {
            if (const std::size_t num_apart = count_apart(i); num_apart > 0) {
                const block_sequence& each = _nodes[_entries[i].child].blocks;
                part                       = joined(part, repeated(each, num_apart, false), false);
                i += num_apart - 1;
                continue;
            }
            const place end   = end_of(_entries[i - 1]);
            const place begin = first_of(_entries[i]);
            meeting found;
            if (begin.source == end.source) {
                found = meeting_of(begin.offset - end.offset, _entries[i].stride - _entries[i - 1].stride, _count);
            }
            const block_sequence& next = _nodes[_entries[i].child].blocks;
            if (found.is_once()) {
                _events.push_back({found.iteration, _parts.size()});
                _parts.push_back(part);
                part = next;
            } else {
                part = joined(part, next, found.is_always());
            }
        }
        _parts.push_back(part);
        std::ranges::sort(_events, {}, &event::iteration);
    }

    void append_all()
    {
        if (_events.empty()) {
            append_alike(_parts[0], 0, _count);
            return;
        }
        sequence_tree tree(_parts);
        const block_sequence alike = tree.whole();
        std::uint64_t done         = 0;
        for (std::size_t i = 0; i < _events.size();) {
            const std::uint64_t iteration = _events[i].iteration;
            append_alike(alike, done, iteration);
            std::size_t next = i;
            for (; next < _events.size() && _events[next].iteration == iteration; ++next) {
                tree.set(_events[next].part, true);
            }
            append(tree.whole(), iteration, 1);
            for (; i < next; ++i) {
                tree.set(_events[i].part, false);
            }
            done = iteration + 1;
        }
        append_alike(alike, done, _count);
    }

    // Appends the iterations [from, to).
    void append_alike(const block_sequence& one, std::uint64_t from, std::uint64_t to)
    {
        if (_turn.is_once() && from <= _turn.iteration && _turn.iteration + 1 < to) {
            append(one, from, _turn.iteration + 1 - from);
            from = _turn.iteration + 1;
        }
        if (from < to) {
            append(one, from, to - from);
        }
    }

    // Appends `times` iterations, between which every turn is the same.
    void append(const block_sequence& one, std::uint64_t from, std::uint64_t times)
    {
        const bool touch = _turn.is_always() || (_turn.is_once() && from > 0 && _turn.iteration == from - 1);
        _all             = joined(_all, repeated(one, times, _turn.is_always()), touch);
    }

    std::uint64_t _count;
    std::span<const layout_entry> _entries;
    std::span<const counted_node> _nodes; // the children among them
    std::vector<block_sequence> _parts;
    std::vector<event> _events;
    meeting _turn; // of an iteration with the next one
    block_sequence _all;
};

} // namespace

block_stats count_blocks(const layout& layout)
{
    std::vector<counted_node> nodes;
    nodes.reserve(layout.nodes().size());
    for (const layout_node& node : layout.nodes()) {
        nodes.push_back(node.is_block() ? counted_node{block_sequence::of_one(node.packed_length),
                                                       {},
                                                       {0, static_cast<std::int64_t>(node.packed_length)}}
                                        : loop_count(layout, node, nodes).run());
    }
    if (nodes.empty()) {
        return {};
    }
    const block_sequence& all = nodes[layout.root().child].blocks;
    return {all.count, all.min(), all.max()};
}

} // namespace ucxl
