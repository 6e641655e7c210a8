#include "layout_builder.h"

#include "block_count.h"
#include "checked.h"
#include "wire_encode.h"

#include <algorithm>
#include <format>
#include <ranges>

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
            if (_index[item.child] == no_node) {
                visit(item.child);
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

result<void> layout_builder::set_nest(nest& from, const placed& root)
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
    for (const std::uint32_t index : ordered.order()) {
        add_node(from.at(index));
    }
    layout._root        = {root.source, static_cast<std::uint32_t>(layout._nodes.size() - 1), root.offset, 0, 0};
    layout._num_sources = root.source + from.at(root.node).num_sources;
    _keeps_order        = std::ranges::equal(ordered.order(), std::views::iota(std::size_t{0}, from.size()));
    if (_keeps_order) {
        layout._entries = from.take_items();
    } else {
        layout._entries.reserve(ordered.num_entries());
        for (const std::uint32_t index : ordered.order()) {
            for (const nest_item& item : from.items_of(from.at(index))) {
                layout._entries.push_back({item.source, ordered.index(item.child), item.offset, item.stride});
            }
        }
    }
    for (layout_node& node : layout._nodes) {
        if (!node.is_block()) {
            derive_entries(node);
        }
    }
    return {};
}

// Nodes come children first, and the entries of a node in a row, in the order of nodes.
void layout_builder::add_node(const nest_node& node)
{
    layout_node& out  = _made->_nodes.emplace_back();
    out.count         = node.count;
    out.packed_length = node.packed_length;
    out.depth         = node.depth;
    if (node.is_block()) {
        out.cycle_length = node.packed_length;
        out.num_blocks   = 1;
        return;
    }
    out.cycle_length = node.packed_length / node.count;
    out.first_entry  = _num_entries;
    out.num_entries  = node.num_items;
    _num_entries += node.num_items;
}

// The children of the loop are known.
void layout_builder::derive_entries(layout_node& loop)
{
    const std::span all  = std::span(_made->_entries).subspan(loop.first_entry, loop.num_entries);
    std::uint64_t before = 0, num_blocks = 0;
    for (std::size_t i = 0; i < all.size();) {
        // Most entries of long lists have the same child.
        const std::uint32_t index = all[i].child;
        const layout_node child   = _made->_nodes[index];
        for (; i < all.size() && all[i].child == index; ++i) {
            all[i].packed_offset = before;
            before += child.packed_length;
            num_blocks += child.num_blocks;
        }
    }
    loop.num_blocks = num_blocks * loop.count; // at most packed_length
}

// The nest knows the bounds of all sources together.
result<std::vector<source_span>> layout_builder::spans(const nest& from, const placed& root) const
{
    if (root.is_empty() || from.at(root.node).num_sources > 1) {
        return true_bounds(*_made);
    }
    const source_span only{0, from.at(root.node).lb, from.at(root.node).ub};
    return span_of_root(only, _made->root()).transform([](const source_span& span) { return std::vector{span}; });
}

result<void> layout_builder::set_bounds(std::span<const source_span> spans, std::span<const user_bounds> bounds)
{
    layout& layout = *_made;
    for (const user_bounds& set : bounds) {
        if (set.source >= limits::max_sources) {
            return fail(errc::exceeds_limit, std::format("source {} is over the limit of {} sources (max_sources)",
                                                         set.source, limits::max_sources));
        }
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
    drop_unused_sources();
    return {};
}

result<void> layout_builder::set_all(nest& from, const placed& root, std::span<const user_bounds> bounds)
{
    if (root.is_empty()) {
        _keeps_order = from.size() == 0;
    } else {
        UCXL_TRY(set_nest(from, root));
    }
    const auto bytes = UCXL_TRY(spans(from, root));
    return set_bounds(bytes, bounds);
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

void layout_builder::set_derived(const hashed_wire_form& form)
{
    layout& layout = *_made;
    layout._extent = 0;
    for (const layout_bounds& bounds : layout._bounds) {
        layout._extent = std::max(layout._extent, bounds.extent());
    }
    layout._blocks      = count_blocks(layout);
    layout._hash        = form.hash;
    layout._wire_length = form.length;
}

result<layout_ptr> layout_builder::finish(nest&& from, const placed& root, std::span<const user_bounds> bounds)
{
    layout_builder builder;
    UCXL_TRY(builder.set_all(from, root, bounds));
    builder.set_derived(hash_content(*builder._made));
    return builder._made;
}

result<layout_ptr> layout_builder::read(nest&& from, const placed& root, std::span<const user_bounds> bounds,
                                        const hashed_wire_form& form)
{
    layout_builder builder;
    UCXL_TRY(builder.set_all(from, root, bounds));
    const layout& made = *builder._made; // without sources that say nothing
    const auto adds    = [&](const user_bounds& set) {
        return set.source < made.num_sources() && wire::has_set_bounds(made.bounds(set.source));
    };
    if (!builder._keeps_order || !std::ranges::all_of(bounds, adds)) {
        return layout_ptr();
    }
    builder.set_derived(form);
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
    builder.set_derived(hash_content(layout));
    return builder._made;
}

} // namespace ucxl
