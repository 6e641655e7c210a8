// A summary of a sequence of blocks, enough to count the blocks of any longer sequence that contains it. Only the first
// and the last block can still grow.
//
// Example: a is 4, 8, 4, and the last block of one a touches the first block of the next:
//     joined(a, a, true) has 5 blocks, of which the middle one is 8 long.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ucxl
{

struct block_sequence {
    std::uint64_t count     = 0; // 0: the sequence is empty
    std::uint64_t first     = 0; // bytes; first and last are the same block where the count is 1
    std::uint64_t last      = 0;
    std::uint64_t inner_min = UINT64_MAX; // bytes, of the blocks between the first and the last
    std::uint64_t inner_max = 0;

    static block_sequence of_one(std::uint64_t length) { return {.count = 1, .first = length, .last = length}; }

    void see_inner(std::uint64_t length)
    {
        inner_min = std::min(inner_min, length);
        inner_max = std::max(inner_max, length);
    }

    std::uint64_t min() const { return count == 0 ? 0 : std::min({first, last, inner_min}); }
    std::uint64_t max() const { return std::max({first, last, inner_max}); }
};

// Puts `after` behind `before`. With `touch`, the last block of one and the first block of the other become one block.
inline block_sequence joined(const block_sequence& before, const block_sequence& after, bool touch)
{
    if (before.count == 0 || after.count == 0) {
        return before.count == 0 ? after : before;
    }
    block_sequence both{.count     = before.count + after.count - (touch ? 1 : 0),
                        .first     = before.first,
                        .last      = after.last,
                        .inner_min = std::min(before.inner_min, after.inner_min),
                        .inner_max = std::max(before.inner_max, after.inner_max)};
    const bool ends_first   = before.count == 1;
    const bool begins_last  = after.count == 1;
    const std::uint64_t one = before.last + after.first;
    if (touch) {
        both.first = ends_first ? one : both.first;
        both.last  = begins_last ? one : both.last;
        if (!ends_first && !begins_last) {
            both.see_inner(one);
        }
        return both;
    }
    if (!ends_first) {
        both.see_inner(before.last);
    }
    if (!begins_last) {
        both.see_inner(after.first);
    }
    return both;
}

// Repeats the sequence `times` times; times >= 1.
inline block_sequence repeated(const block_sequence& one, std::uint64_t times, bool touch)
{
    if (one.count == 0 || times == 1) {
        return one;
    }
    if (touch && one.count == 1) {
        return block_sequence::of_one(one.first * times);
    }
    block_sequence all = joined(one, one, touch);
    if (times > 2) {
        all       = joined(all, one, touch); // from the third repetition on, each adds as much as the third
        all.count = times * one.count - (touch ? times - 1 : 0);
    }
    return all;
}

} // namespace ucxl
