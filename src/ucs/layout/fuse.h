// Finds loops in a list of loop entries: neighbours that continue each other, and lists that repeat as a whole. fuse()
// takes linear time; find_period() takes at most that times the number of divisors of the length.
#pragma once

#include "nest.h"

#include <optional>
#include <vector>

namespace ucxl
{

// `count` times item.child, starting at item.offset, `step` bytes apart.
struct item_run {
    nest_item item;
    std::uint64_t count = 1;
    std::int64_t step   = 0; // 0 for count 1
};

// Joins neighbours that continue each other. Blocks that touch become larger blocks of the nest. The caller makes loops
// of the runs, so that a long run costs one node. Nothing is returned if no neighbours do.
std::optional<std::vector<item_run>> fuse(nest& nest, std::span<const nest_item> items);

// Returns the smallest divisor p of items.size() such that items[i + p] is items[i] moved by a step that depends only
// on i % p (for two cycles: one step for all items). Returns items.size() if there is none.
std::size_t find_period(std::span<const nest_item> items);

} // namespace ucxl
