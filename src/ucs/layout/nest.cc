#include "nest.h"

#include "checked.h"
#include "sys/secret.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t word)
{
    state = (state ^ word) * 0x9fb21c651e98df25u;
    return state ^ (state >> 32);
}

// Each number by itself: peers could choose items whose sums are equal.
std::uint64_t mix(std::uint64_t state, const nest_item& item)
{
    state = mix(state, (std::uint64_t{item.source} << 32) | item.child);
    return mix(mix(state, static_cast<std::uint64_t>(item.stride)), static_cast<std::uint64_t>(item.offset));
}

// Peers choose layouts, and so the nodes.
std::uint64_t hash_of(std::uint64_t count, std::uint64_t length, std::span<const nest_item> items)
{
    // Each step waits for the one before, so several rows of steps go on at a time.
    const std::uint64_t begin = mix(mix(items.size() ^ process_secret(), count), length);
    std::uint64_t rows[4]     = {begin, mix(begin, 1), mix(begin, 2), mix(begin, 3)};
    std::size_t i             = 0;
    for (; i + 4 <= items.size(); i += 4) {
        for (std::size_t row = 0; row < 4; ++row) {
            rows[row] = mix(rows[row], items[i + row]);
        }
    }
    for (; i < items.size(); ++i) {
        rows[0] = mix(rows[0], items[i]);
    }
    return mix(mix(mix(rows[0], rows[1]), rows[2]), rows[3]);
}

// Computes the bounds of an item over all iterations, relative to its loop.
bool item_bounds(const nest_item& item, const nest_node& child, std::uint64_t count, std::int64_t& lb, std::int64_t& ub)
{
    std::int64_t travel;
    if (!checked::mul(count - 1, item.stride, travel) || !checked::add(item.offset, child.lb, lb) ||
        !checked::add(item.offset, child.ub, ub)) {
        return false;
    }
    return travel < 0 ? checked::add(lb, travel, lb) : checked::add(ub, travel, ub);
}

std::unexpected<error> out_of_bounds()
{
    return fail(errc::exceeds_limit,
                std::format("a byte lies further from its base address than max_offset ({})", limits::max_offset));
}

} // namespace

template <typename Keep>
std::uint32_t nest::find_or_add(const nest_node& node, std::span<const nest_item> items, Keep&& keep)
{
    if ((_nodes.size() + 1) * 2 > _table.size()) {
        grow_table();
    }
    const std::size_t mask = _table.size() - 1;
    std::size_t slot       = node.hash & mask;
    for (; _table[slot] != no_node; slot = (slot + 1) & mask) {
        const nest_node& other = _nodes[_table[slot]];
        if (other.hash == node.hash && other.count == node.count && other.packed_length == node.packed_length &&
            std::ranges::equal(items_of(other), items)) {
            return _table[slot];
        }
    }
    const auto index = static_cast<std::uint32_t>(_nodes.size());
    _nodes.push_back(node);
    _nodes.back().first_item = static_cast<std::uint32_t>(_items.size());
    keep();
    _table[slot] = index;
    return index;
}

std::uint32_t nest::find_block(std::uint64_t length)
{
    nest_node node;
    node.packed_length = length;
    node.ub            = static_cast<std::int64_t>(length);
    node.hash          = hash_of(0, length, {});
    _last_block        = find_or_add(node, {}, [] {});
    return _last_block;
}

result<std::uint32_t> nest::loop(std::uint64_t count, std::span<const nest_item> items)
{
    const auto keep = [&] { _items.insert(_items.end(), items.begin(), items.end()); };
    return describe(count, items).transform([&](const nest_node& node) { return find_or_add(node, items, keep); });
}

result<std::uint32_t> nest::loop(std::uint64_t count, std::vector<nest_item>&& items)
{
    const auto keep = [&] {
        if (_items.empty()) {
            _items = std::move(items);
        } else {
            _items.insert(_items.end(), items.begin(), items.end());
        }
    };
    return describe(count, items).transform([&](const nest_node& node) { return find_or_add(node, items, keep); });
}

result<nest_node> nest::describe(std::uint64_t count, std::span<const nest_item> items) const
{
    // So many lengths within their limit add up.
    constexpr std::size_t max_run = 1 << 16;
    static_assert(max_run * limits::max_length + limits::max_length < std::uint64_t{1} << 63);
    if (_items.size() + items.size() > limits::max_built_entries) {
        return fail(errc::exceeds_limit, std::format("more than {} entries of loops would have to be built on the way "
                                                     "to the layout (max_built_entries)",
                                                     limits::max_built_entries));
    }
    nest_node node{.count = count, .lb = INT64_MAX, .ub = INT64_MIN, .num_sources = 0};
    for (std::size_t i = 0; i < items.size() && node.packed_length <= limits::max_length;) {
        // Most items of long lists have the same child.
        const nest_node child   = _nodes[items[i].child];
        const std::size_t first = i;
        const std::size_t end   = std::min(items.size(), i + max_run);
        for (; i < end && items[i].child == items[first].child; ++i) {
            std::int64_t lb, ub;
            if (!item_bounds(items[i], child, count, lb, ub)) {
                return out_of_bounds();
            }
            node.lb          = std::min(node.lb, lb);
            node.ub          = std::max(node.ub, ub);
            node.num_sources = std::max(node.num_sources, items[i].source + child.num_sources);
        }
        node.packed_length += (i - first) * child.packed_length;
        node.depth = std::max(node.depth, child.depth + 1);
    }
    if (!checked::mul(count, node.packed_length, node.packed_length) || node.packed_length > limits::max_length) {
        return fail(errc::exceeds_limit, std::format("packed length exceeds max_length ({})", limits::max_length));
    }
    // Hoisting can double the distance of a part. This check refuses only what no use could need; the root checks the
    // exact limit.
    if (node.lb < -4 * limits::max_offset || node.ub > 4 * limits::max_offset) {
        return out_of_bounds();
    }
    if (node.num_sources > limits::max_sources) {
        return fail(errc::exceeds_limit, std::format("a source exceeds max_sources ({})", limits::max_sources));
    }
    node.num_items = static_cast<std::uint32_t>(items.size());
    node.hash      = hash_of(count, 0, items);
    return node;
}

result<placed> nest::import(const layout& from)
{
    if (from.is_empty()) {
        return placed{};
    }
    std::vector<std::uint32_t> known(from.nodes().size());
    std::vector<nest_item> items;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const layout_node& node = from.nodes()[i];
        if (node.is_block()) {
            known[i] = block(node.packed_length);
            continue;
        }
        items.clear();
        for (const layout_entry& entry : from.entries_of(node)) {
            items.push_back({entry.source, known[entry.child], entry.offset, entry.stride});
        }
        auto added = UCXL_TRY(loop(node.count, items));
        known[i]   = added;
    }
    return placed{from.root().source, known[from.root().child], from.root().offset};
}

void nest::grow_table()
{
    std::vector<std::uint32_t> larger(std::max<std::size_t>(16, _table.size() * 2), no_node);
    const std::size_t mask = larger.size() - 1;
    for (std::uint32_t index = 0; index < _nodes.size(); ++index) {
        std::size_t slot = _nodes[index].hash & mask;
        while (larger[slot] != no_node) {
            slot = (slot + 1) & mask;
        }
        larger[slot] = index;
    }
    _table = std::move(larger);
}

} // namespace ucxl
