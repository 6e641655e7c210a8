#include "normalise.h"

#include "checked.h"
#include "fuse.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

// Replaces loops of count 1 by their entries, in order.
result<void> splice(const nest& nest, std::vector<nest_item>& items)
{
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < items.size();) {
        // Most items of long lists have the same child.
        const std::uint32_t child = items[i].child;
        const std::uint64_t each  = nest.at(child).count == 1 ? nest.at(child).num_items : 1;
        for (; i < items.size() && items[i].child == child; ++i) {
            total += each;
        }
    }
    if (total > limits::max_entries) {
        return fail(errc::exceeds_limit, std::format("{} entries exceed max_entries ({})", total, limits::max_entries));
    }
    if (total == items.size()) {
        return {};
    }
    std::vector<nest_item> flat;
    flat.reserve(total);
    for (const nest_item& item : items) {
        if (nest.at(item.child).count != 1) {
            flat.push_back(item);
            continue;
        }
        for (const nest_item& inner : nest.items_of(nest.at(item.child))) {
            nest_item moved{item.source + inner.source, inner.child, inner.offset, item.stride};
            if (!checked::add(item.offset, inner.offset, moved.offset)) {
                return fail(errc::exceeds_limit, std::format("an offset exceeds max_offset ({})", limits::max_offset));
            }
            flat.push_back(moved);
        }
    }
    items = std::move(flat);
    return {};
}

bool has_one_stride(std::span<const nest_item> items)
{
    return std::ranges::all_of(items, [&](const nest_item& item) { return item.stride == items[0].stride; });
}

// Consecutive iterations touch.
bool is_one_block(const nest_node& child, std::int64_t stride)
{
    return child.is_block() && stride == static_cast<std::int64_t>(child.packed_length);
}

// The next iteration of a loop around the child begins where the child's own next iteration would.
bool continues(const nest& nest, const nest_node& child, std::int64_t stride)
{
    std::int64_t travel;
    return !child.is_block() && has_one_stride(nest.items_of(child)) &&
           checked::mul(child.count, nest.items_of(child)[0].stride, travel) && travel == stride;
}

// Makes a loop of one item.
result<placed> loop_of_one(nest& nest, std::uint64_t count, nest_item item)
{
    if (count == 1) {
        return placed{item.source, item.child, item.offset};
    }
    const placed position{item.source, no_node, item.offset};
    const nest_node child = nest.at(item.child);
    std::uint64_t length, merged_count;
    if (is_one_block(child, item.stride)) {
        if (!checked::mul(count, child.packed_length, length) || length > limits::max_length) {
            return fail(errc::exceeds_limit, std::format("packed length exceeds max_length ({})", limits::max_length));
        }
        return placed{position.source, nest.block(length), position.offset};
    }
    result<std::uint32_t> node;
    if (continues(nest, child, item.stride)) {
        if (!checked::mul(count, child.count, merged_count)) {
            return fail(errc::exceeds_limit, std::format("packed length exceeds max_length ({})", limits::max_length));
        }
        const auto items = nest.items_of(child);
        node             = nest.loop(merged_count, std::vector<nest_item>(items.begin(), items.end()));
    } else {
        item.source = 0;
        item.offset = 0;
        node        = nest.loop(count, {&item, 1});
    }
    const std::uint32_t index = UCXL_TRY(std::move(node));
    return placed{position.source, index, position.offset};
}

// Makes loops of the runs.
result<void> settle(nest& nest, std::span<const item_run> runs, std::vector<nest_item>& items)
{
    items.clear();
    for (const item_run& run : runs) {
        nest_item item = run.item;
        if (run.count > 1) {
            auto loop  = UCXL_TRY(loop_of_one(nest, run.count, {0, item.child, 0, run.step}));
            item.child = loop.node;
        }
        items.push_back(item);
    }
    return {};
}

// Makes the loop, after all other rules have been applied to its items.
result<placed> hoist(nest& nest, std::uint64_t count, std::vector<nest_item> items)
{
    placed position{UINT32_MAX, no_node, items[0].offset};
    for (const nest_item& item : items) {
        position.source = std::min(position.source, item.source);
    }
    for (nest_item& item : items) {
        item.source -= position.source;
        if (!checked::sub(item.offset, position.offset, item.offset)) {
            return fail(errc::exceeds_limit,
                        std::format("offsets differ by more than max_offset ({})", limits::max_offset));
        }
    }
    auto node     = UCXL_TRY(nest.loop(count, std::move(items)));
    position.node = node;
    return position;
}

bool is_hoisted(std::span<const nest_item> items)
{
    return items[0].offset == 0 && std::ranges::min(items, {}, &nest_item::source).source == 0;
}

} // namespace

bool is_normal(nest& nest, std::uint64_t count, std::span<const nest_item> items)
{
    if (count == 0 || items.empty() || !is_hoisted(items)) {
        return false;
    }
    std::uint32_t seen = no_node; // most items of long lists have the same child
    for (const nest_item& item : items) {
        if ((item.child != seen && nest.at(item.child).count == 1) || (count == 1 && item.stride != 0)) {
            return false;
        }
        seen = item.child;
    }
    if (items.size() == 1) {
        const nest_node& child = nest.at(items[0].child);
        return count > 1 && !is_one_block(child, items[0].stride) && !continues(nest, child, items[0].stride);
    }
    return !fuse(nest, items) && (!has_one_stride(items) || find_period(items) == items.size());
}

result<placed> normalise(nest& nest, std::uint64_t count, std::vector<nest_item> items)
{
    std::erase_if(items, [](const nest_item& item) { return item.child == no_node; });
    if (count == 0 || items.empty()) {
        return placed{};
    }
    if (count == 1) {
        for (nest_item& item : items) {
            item.stride = 0;
        }
    }
    UCXL_TRY(splice(nest, items));
    for (;;) {
        const auto runs = fuse(nest, items);
        if (runs) {
            UCXL_TRY(settle(nest, *runs, items));
        }
        if (items.size() == 1) {
            return loop_of_one(nest, count, items[0]);
        }
        const std::size_t period = has_one_stride(items) ? find_period(items) : items.size();
        if (period < items.size()) {
            const std::int64_t stride  = items[0].stride;
            const std::uint64_t cycles = items.size() / period;
            for (std::size_t i = 0; i < period; ++i) {
                items[i].stride = items[i + period].offset - items[i].offset;
            }
            items.resize(period);
            auto inner = UCXL_TRY(normalise(nest, cycles, std::move(items)));
            return normalise(nest, count, {{inner.source, inner.node, inner.offset, stride}});
        }
        if (!runs) {
            return hoist(nest, count, std::move(items));
        }
    }
}

} // namespace ucxl
