// The rules of the normal form. normalise() makes one loop of children that are already normal; applied bottom up, it
// makes any nest normal. No rule changes which bytes are visited or their order.
//
//   - empty parts disappear: entries without bytes, loops of count 0
//   - a loop of count 1 inside another loop is spliced into its parent's entries, so only a root may be one
//   - a loop of count 1 with one entry is that entry; blocks at stride == length are one block
//   - a loop over one loop of n iterations whose entries all have stride k is one loop when its own stride is n * k
//   - neighbours that continue each other are one: blocks that touch; a loop and what would be its next or previous
//   iteration
//   - four or more neighbours that differ by equal steps only are a loop; a whole list that repeats is a loop from the
//     shortest repetition on (three times, or twice at one common step)
//   - the first block of a node is at offset 0 and its smallest source is 0 (hoisted to where it is used); stride is 0
//     where a loop runs once
//
// Every rule makes the form smaller and they are applied until none fits: hence idempotent.
//
// Example: {count 4, {block 8 at 0, block 8 at 8}, stride 32} is {count 4, {block 16}, stride 32}.
#pragma once

#include "nest.h"

namespace ucxl
{

// Items may have no_node (nothing). Fails with exceeds_limit if a limit is exceeded.
result<placed> normalise(nest& nest, std::uint64_t count, std::vector<nest_item> items);

// Returns whether normalise() would make a loop of exactly these items. Takes linear time for any list.
bool is_normal(nest& nest, std::uint64_t count, std::span<const nest_item> items);

} // namespace ucxl
