// Finding loops in a list of loop entries: neighbours that continue each other, and lists that repeat as a whole.
// Both take time linear in the list (find_period: times the number of divisors of its length, in the worst case).
#pragma once

#include "nest.h"

namespace ucxl
{

// `count` times item.node from item.offset on, `step` bytes apart.
struct item_run {
    nest_item item;
    std::uint64_t count = 1;
    std::int64_t step   = 0; // 0 for count 1
};

// Neighbours that continue each other, joined. Blocks that touch become larger blocks in `in`; runs are left to the
// caller to make into loops, so that a long run costs one node.
std::vector<item_run> fuse(nest& in, std::span<const nest_item> items);

// The smallest p, dividing items.size(), such that items[i + p] is items[i] moved by a step that depends on i % p only
// (with two cycles: by one step for all). items.size() if there is none.
std::size_t find_period(std::span<const nest_item> items);

} // namespace ucxl
