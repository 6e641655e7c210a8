#include "lower.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "plan_builder.h"
#include "ucs/layout/walk.h"

namespace ucxl::mlx5
{

namespace
{

using placed = plan_builder::placed;

// Published costs of binding and of translating, rounded.
constexpr double bind_ns        = 1000; // of a UMR work request
constexpr double octoword_ns    = 4;    // to write one into the device's translation memory
constexpr double translation_ns = 25;   // to follow one
constexpr double nesting_ns     = 500;  // latency of one level more

// Something repeated: child of a loop with its place resolved down to an address space.
struct item {
    address_space space;
    std::int64_t offset = 0;
    std::int64_t stride = 0;
    const layout_node* child;
};

class structured_lowering
{
public:
    structured_lowering(const layout& layout, plan_builder& builder)
        : _layout(layout), _builder(builder), _reach(reach_of_all(layout))
    {
    }

    placed whole()
    {
        const layout_entry& root = _layout.root();
        return once({{false, root.source}, root.offset, 0, &node(root.child)});
    }

private:
    const layout_node& node(std::uint32_t index) const { return _layout.nodes()[index]; }

    // A child's entry as seen from where the child is. A source is an offset of base addresses, which a key has not:
    // inside a key all entries refer to it.
    static item place(const item& parent, const layout_entry& entry, const layout_node& child)
    {
        item found{parent.space, parent.offset + entry.offset, entry.stride, &child};
        if (!parent.space.key) {
            found.space.target += entry.source;
        }
        return found;
    }

    std::vector<item> children_of(const item& parent) const
    {
        std::vector<item> children;
        for (const layout_entry& entry : _layout.entries_of(*parent.child)) {
            children.push_back(place(parent, entry, node(entry.child)));
        }
        return children;
    }

    placed once(const item& one)
    {
        if (one.child->is_block()) {
            return extent_of{one.space, one.offset, one.child->packed_length};
        }
        return loop(one.child->count, children_of(one));
    }

    placed loop(std::uint64_t count, std::span<const item> items)
    {
        if (count == 1) {
            std::vector<extent_of> pieces;
            for (const item& one : items) {
                const placed piece = once(one);
                if (!piece) {
                    return piece;
                }
                pieces.push_back(*piece);
            }
            return _builder.concatenate(std::move(pieces));
        }
        if (items.size() == 1 && !items[0].child->is_block()) {
            return repeated(count, items[0]);
        }
        std::vector<run> runs;
        for (const item& one : items) {
            if (one.child->is_block()) {
                runs.push_back({{one.space, one.offset, one.child->packed_length}, one.stride});
                continue;
            }
            const placed all = repeated(count, one);
            if (!all) {
                return all;
            }
            const std::uint64_t each = one.child->packed_length;
            runs.push_back({{all->space, all->offset, each}, static_cast<std::int64_t>(each)});
        }
        return _builder.interleave(count, runs);
    }

    // `count` iterations of a loop that has a loop inside.
    placed repeated(std::uint64_t count, const item& outer)
    {
        const std::uint64_t inner_count = outer.child->count;
        std::vector<item> children      = children_of(outer);
        if (inner_count == 1) {
            for (item& one : children) {
                one.stride = outer.stride; // what stood still inside one iteration moves with the outer loop
            }
            return loop(count, children);
        }
        if (const auto lowest = selectable(children)) {
            return selected(count, outer, *lowest, std::move(children));
        }
        if (children.size() == 1) {
            return expanded(count, outer, outer.stride, [&](const item& moved) { return once(moved); });
        }
        std::vector<run> runs;
        for (const item& one : children) {
            const placed all = repeated_entry(count, outer, one);
            if (!all) {
                return all;
            }
            const std::uint64_t each = one.child->packed_length;
            runs.push_back({{all->space, all->offset, each}, static_cast<std::int64_t>(each)});
        }
        return _builder.interleave(count * inner_count, runs);
    }

    // The lowest offset of all entries, if they advance together by a stride that none of them reaches across.
    std::optional<std::int64_t> selectable(std::span<const item> children) const
    {
        const std::int64_t stride = children[0].stride;
        std::int64_t low          = INT64_MAX;
        std::int64_t high         = INT64_MIN;
        for (const item& one : children) {
            if (one.stride != stride || !(one.space == children[0].space)) {
                return std::nullopt;
            }
            const reach_of_node& bytes = _reach[static_cast<std::size_t>(one.child - _layout.nodes().data())];
            if (!bytes) {
                return std::nullopt;
            }
            low  = std::min(low, one.offset + bytes->first);
            high = std::max(high, one.offset + bytes->second);
        }
        return stride > 0 && high - low <= stride ? std::optional(low) : std::nullopt;
    }

    // Where the bytes of a node lie, relative to the node; nothing when several sources are behind it.
    using reach_of_node = std::optional<std::pair<std::int64_t, std::int64_t>>;

    // Children come before parents, so one pass sees every node once however often it is used.
    static std::vector<reach_of_node> reach_of_all(const layout& layout)
    {
        std::vector<reach_of_node> all;
        for (const layout_node& one : layout.nodes()) {
            if (one.is_block()) {
                all.emplace_back(std::pair(std::int64_t{0}, static_cast<std::int64_t>(one.packed_length)));
                continue;
            }
            std::int64_t low  = INT64_MAX;
            std::int64_t high = INT64_MIN;
            bool one_source   = true;
            for (const layout_entry& entry : layout.entries_of(one)) {
                const reach_of_node& child = all[entry.child];
                if (!child || entry.source != 0) {
                    one_source = false;
                    break;
                }
                const std::int64_t travel = static_cast<std::int64_t>(one.count - 1) * entry.stride;
                low  = std::min(low, entry.offset + child->first + std::min<std::int64_t>(travel, 0));
                high = std::max(high, entry.offset + child->second + std::max<std::int64_t>(travel, 0));
            }
            all.push_back(one_source ? reach_of_node(std::pair(low, high)) : std::nullopt);
        }
        return all;
    }

    // All iterations of both loops for one entry of the inner one.
    placed repeated_entry(std::uint64_t count, const item& outer, const item& one)
    {
        if (const auto lowest = selectable(std::span(&one, 1))) {
            return selected(count, outer, *lowest, {one});
        }
        return expanded(count, one, outer.stride,
                        [&](const item& moved) { return loop(outer.child->count, std::span(&moved, 1)); });
    }

    // Makes the outer loop contiguous, in chunks as long as a whole inner loop; within the chunks both loops become
    // one.
    placed selected(std::uint64_t count, const item& outer, std::int64_t lowest, std::vector<item> children)
    {
        const std::uint64_t inner_count = outer.child->count;
        const std::uint64_t length      = inner_count * static_cast<std::uint64_t>(children[0].stride);
        const run chunk{{children[0].space, lowest, length}, outer.stride};
        const placed chunks = _builder.interleave(count, std::span(&chunk, 1));
        if (!chunks) {
            return chunks;
        }
        for (item& one : children) {
            one.space  = chunks->space;
            one.offset = chunks->offset + (one.offset - lowest);
        }
        return loop(count * inner_count, children);
    }

    // Every turn of the outer loop separately, mostly one key each.
    template <typename Fn>
    placed expanded(std::uint64_t count, const item& one, std::int64_t stride, const Fn& lowered)
    {
        if (count > _builder.limits().max_entries) {
            return _builder.too_many_entries(count);
        }
        std::vector<extent_of> pieces;
        for (std::uint64_t turn = 0; turn < count; ++turn) {
            UCXL_TRY(_builder.note_work(1));
            item moved = one;
            moved.offset += static_cast<std::int64_t>(turn) * stride;
            const placed piece = lowered(moved);
            if (!piece) {
                return piece;
            }
            pieces.push_back(*piece);
        }
        return _builder.concatenate(std::move(pieces));
    }

    const layout& _layout;
    plan_builder& _builder;
    std::vector<reach_of_node> _reach; // by node index
};

std::unexpected<error> nothing_to_map()
{
    return fail(errc::invalid_param, "the layout has no bytes");
}

} // namespace

result<plan> lower_flat(const layout& layout, const device_limits& limits)
{
    if (layout.is_empty()) {
        return nothing_to_map();
    }
    if (layout.blocks().count > limits.max_entries) {
        return plan_builder(limits).too_many_entries(layout.blocks().count);
    }
    std::vector<extent_of> pieces;
    pieces.reserve(layout.blocks().count);
    for_each_block(layout, 0, layout.packed_length(), [&](const placed_block& block) {
        pieces.push_back({{false, block.source}, block.offset, block.length});
    });
    plan_builder builder(limits);
    const extent_of whole = UCXL_TRY(builder.concatenate(std::move(pieces)));
    return builder.finish(whole);
}

result<plan> lower_nested(const layout& layout, const device_limits& limits)
{
    if (layout.is_empty()) {
        return nothing_to_map();
    }
    plan_builder builder(limits);
    const extent_of whole = UCXL_TRY(structured_lowering(layout, builder).whole());
    return builder.finish(whole);
}

result<plan> lower(const layout& layout, const device_limits& limits)
{
    result<plan> nested = lower_nested(layout, limits);
    // Tries a list of all blocks where it may be cheaper than the current plan.
    if (nested && (nested->cost.keys == 1 || nested->cost.octowords < layout.blocks().count / 64)) {
        return nested;
    }
    result<plan> flat = lower_flat(layout, limits);
    if (nested && (!flat || estimated_ns(nested->cost) <= estimated_ns(flat->cost))) {
        return nested;
    }
    return flat;
}

double estimated_ns(const plan_cost& cost, double transfers)
{
    return bind_ns * static_cast<double>(cost.keys) + octoword_ns * static_cast<double>(cost.octowords) +
           transfers * (translation_ns * static_cast<double>(cost.translations) + nesting_ns * cost.depth);
}

} // namespace ucxl::mlx5
