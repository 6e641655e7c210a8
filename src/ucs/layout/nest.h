// The loop-nest nodes under construction. They are hash-consed: equal subtrees are one node, and two nodes are equal
// exactly if their indices are.
//
// Invariant: every node is in normal form and hoisted: its first block is at offset 0 and its smallest source is 0. A
// `placed` holds the node's real offset and source. Lengths and relative bounds of every node are within limits.
//
// Example: nest n; auto x = n.block(8); nest_item once{.child = x, .stride = 16}; auto loop = n.loop(4, {&once, 1});
#pragma once

#include "layout.h"
#include "sys/error.h"

#include <span>
#include <vector>

namespace ucxl
{

inline constexpr std::uint32_t no_node = UINT32_MAX; // of an item: nothing, dropped by normalisation

// One entry of a loop under construction. Its packed offset is still 0.
using nest_item = layout_entry;

// A node with its source and offset.
struct placed {
    std::uint32_t source = 0;
    std::uint32_t node   = no_node; // no_node: empty
    std::int64_t offset  = 0;

    bool is_empty() const { return node == no_node; }
};

struct nest_node {
    std::uint64_t count         = 0; // 0: block
    std::uint64_t packed_length = 0;
    std::uint32_t first_item    = 0;
    std::uint32_t num_items     = 0;
    std::int64_t lb             = 0; // over all sources, relative to the node
    std::int64_t ub             = 0;
    std::uint32_t num_sources   = 1; // 1 + the largest source below
    std::uint32_t depth         = 0;
    std::uint64_t hash          = 0;

    bool is_block() const { return count == 0; }
};

class nest
{
public:
    // length > 0
    std::uint32_t block(std::uint64_t length)
    {
        const bool is_known = _last_block != no_node && _nodes[_last_block].packed_length == length;
        return is_known ? _last_block : find_block(length);
    }
    // Adds a loop that is already in normal form (normalise.h). Fails if a length or bound exceeds its limit.
    result<std::uint32_t> loop(std::uint64_t count, std::span<const nest_item> items);
    // The same, without a copy if this is the first loop: what most long lists are.
    result<std::uint32_t> loop(std::uint64_t count, std::vector<nest_item>&& items);
    // Adds the nodes of a finished layout unchanged.
    result<placed> import(const layout& from);

    const nest_node& at(std::uint32_t node) const { return _nodes[node]; }
    std::span<const nest_item> items_of(const nest_node& node) const
    {
        return std::span(_items).subspan(node.first_item, node.num_items);
    }
    std::size_t size() const { return _nodes.size(); }
    // Those of all nodes, in the order of nodes.
    std::vector<nest_item> take_items() { return std::move(_items); }

private:
    std::uint32_t find_block(std::uint64_t length);
    result<nest_node> describe(std::uint64_t count, std::span<const nest_item> items) const;
    // `keep` appends the items to those of all nodes.
    template <typename Keep>
    std::uint32_t find_or_add(const nest_node& node, std::span<const nest_item> items, Keep&& keep);
    void grow_table();

    std::vector<nest_node> _nodes;
    std::vector<nest_item> _items;
    std::vector<std::uint32_t> _table; // open addressing by hash; size a power of two
    std::uint32_t _last_block = no_node;
};

} // namespace ucxl
