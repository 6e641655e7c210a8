#include "layout_builder.h"

#include "block_count.h"
#include "bounds.h"
#include "checked.h"
#include "hash.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

// The nodes reachable from the root, children first, in the order of first use.
class node_order
{
public:
    explicit node_order(const nest& from) : _nest(from), _index(from.size(), no_node) {}

    void visit(std::uint32_t node)
    {
        for (const nest_item& item : _nest.items_of(_nest.at(node))) {
            if (_index[item.node] == no_node) {
                visit(item.node);
            }
        }
        _index[node] = static_cast<std::uint32_t>(_order.size());
        _order.push_back(node);
        _num_entries += _nest.at(node).num_items;
    }

    std::span<const std::uint32_t> order() const { return _order; }
    std::uint32_t index(std::uint32_t node) const { return _index[node]; }
    std::size_t num_entries() const { return _num_entries; }

private:
    const nest& _nest;
    std::vector<std::uint32_t> _index;
    std::vector<std::uint32_t> _order;
    std::size_t _num_entries = 0;
};

} // namespace

result<void> layout_builder::set_nest(const nest& from, const placed& root)
{
    if (from.at(root.node).depth > limits::max_depth) {
        return fail(errc::exceeds_limit,
                    std::format("{} nested loops exceed max_depth ({})", from.at(root.node).depth, limits::max_depth));
    }
    if (root.source + from.at(root.node).num_sources > limits::max_sources) {
        return fail(errc::exceeds_limit,
                    std::format("source {} exceeds max_sources ({})", root.source + from.at(root.node).num_sources - 1,
                                limits::max_sources));
    }
    node_order ordered(from);
    ordered.visit(root.node);
    if (ordered.num_entries() > limits::max_entries) {
        return fail(errc::exceeds_limit, std::format("{} entries of all loops exceed max_entries ({})",
                                                     ordered.num_entries(), limits::max_entries));
    }
    layout& layout = *_made;
    layout._nodes.reserve(ordered.order().size());
    layout._entries.reserve(ordered.num_entries());
    for (std::uint32_t index : ordered.order()) {
        const nest_node& node = from.at(index);
        layout_node& out      = layout._nodes.emplace_back();
        out.count             = node.count;
        out.packed_length     = node.packed_length;
        out.depth             = node.depth;
        out.num_blocks        = 1;
        out.cycle_length      = node.packed_length;
        if (node.is_block()) {
            continue;
        }
        out.first_entry      = static_cast<std::uint32_t>(layout._entries.size());
        out.num_entries      = node.num_items;
        out.cycle_length     = node.packed_length / node.count;
        out.num_blocks       = 0;
        std::uint64_t before = 0;
        for (const nest_item& item : from.items_of(node)) {
            const std::uint32_t child = ordered.index(item.node);
            layout._entries.push_back({item.source, child, item.offset, item.stride, before});
            before += layout._nodes[child].packed_length;
            out.num_blocks += layout._nodes[child].num_blocks * node.count; // at most packed_length
        }
    }
    layout._root        = {root.source, static_cast<std::uint32_t>(layout._nodes.size() - 1), root.offset, 0, 0};
    layout._num_sources = root.source + from.at(root.node).num_sources;
    return {};
}

result<void> layout_builder::set_bounds(std::span<const user_bounds> bounds)
{
    auto spans     = UCXL_TRY(true_bounds(*_made));
    layout& layout = *_made;
    for (const user_bounds& set : bounds) {
        layout._num_sources = std::max(layout._num_sources, set.source + 1);
    }
    layout._bounds.assign(layout._num_sources, {});
    for (const source_span& span : spans) {
        layout._bounds[span.source] = {span.lb, span.ub, span.lb, span.ub};
    }
    for (const user_bounds& set : bounds) {
        if (!checked::is_offset(set.lb) || !checked::is_offset(set.ub)) {
            return fail(errc::exceeds_limit,
                        std::format("source {}: lower bound {} or upper bound {} exceeds max_offset ({})", set.source,
                                    set.lb, set.ub, limits::max_offset));
        }
        layout._bounds[set.source].lb = set.lb;
        layout._bounds[set.source].ub = set.ub;
    }
    return {};
}

// A source without bytes whose bounds were reset to 0 does not count as used.
void layout_builder::drop_unused_sources()
{
    layout& layout = *_made;
    while (layout._num_sources > 1 && layout._bounds.back() == layout_bounds{}) {
        layout._bounds.pop_back();
        --layout._num_sources;
    }
}

void layout_builder::set_derived()
{
    layout& layout = *_made;
    layout._extent = 0;
    for (const layout_bounds& bounds : layout._bounds) {
        layout._extent = std::max(layout._extent, bounds.extent());
    }
    layout._blocks      = count_blocks(layout);
    const auto hashed   = hash_content(layout);
    layout._hash        = hashed.hash;
    layout._wire_length = hashed.length;
}

result<layout_ptr> layout_builder::finish(const nest& from, const placed& root, std::span<const user_bounds> bounds)
{
    layout_builder builder;
    if (!root.is_empty()) {
        UCXL_TRY(builder.set_nest(from, root));
    }
    UCXL_TRY(builder.set_bounds(bounds));
    builder.set_derived();
    return builder._made;
}

result<layout_ptr> layout_builder::with_bounds(const layout& from, const user_bounds& set)
{
    layout_builder builder;
    layout& layout    = *builder._made;
    layout            = from;
    layout_bounds now = set.source < layout._num_sources ? layout._bounds[set.source] : layout_bounds{};
    now.lb            = set.lb;
    now.ub            = set.ub;
    if (set.source >= layout._num_sources && now != layout_bounds{}) {
        layout._num_sources = set.source + 1;
        layout._bounds.resize(layout._num_sources);
    }
    if (set.source < layout._num_sources) {
        layout._bounds[set.source] = now;
    }
    builder.drop_unused_sources();
    builder.set_derived();
    return builder._made;
}

} // namespace ucxl
