// Lists of blocks of one length, each another one: as a server moves the blocks of a cache that a request happens to
// have. What is made for such a list is made for one message.
//
//     fresh_lists lists(of);
//     side.send_list(lists.next());
//
// Both processes draw the same ones in the same order. std only.
#pragma once

#include "bench/common/layout_case.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace ucxl::bench
{

struct block_order {
    std::vector<std::size_t> offsets; // in packed order
    std::size_t length = 0;           // of each block
};

class fresh_lists
{
public:
    fresh_lists() = default;
    // Of a case whose blocks have one length and places at multiples of it.
    explicit fresh_lists(const layout_case& of) : _length(of.length / of.num_blocks), _count(of.num_blocks)
    {
        _places.resize(of.extent / _length);
        std::iota(_places.begin(), _places.end(), std::size_t{0});
        std::mt19937 random(42); // the same in both processes
        std::ranges::shuffle(_places, random);
        _order.length = _length;
    }

    static bool has(const layout_case& of) { return of.name.starts_with("KV cache"); }

    // Another one than all that were drawn before, until as many were drawn as there are places. Valid until the next
    // call.
    const block_order& next()
    {
        constexpr std::size_t step = 977; // has no factor in common with the number of places
        _order.offsets.resize(_count);
        std::size_t at = _drawn++ * step % _places.size();
        for (std::size_t& offset : _order.offsets) {
            offset = _places[at] * _length;
            at     = at + 1 == _places.size() ? 0 : at + 1;
        }
        return _order;
    }

    // As next(), without making it.
    void skip() { ++_drawn; }

private:
    std::size_t _length = 0, _count = 0, _drawn = 0;
    std::vector<std::size_t> _places;
    block_order _order;
};

} // namespace ucxl::bench
