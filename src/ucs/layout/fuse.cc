#include "fuse.h"

#include "checked.h"

#include <algorithm>

namespace ucxl
{

namespace
{

// Shorter runs stay entries, because a loop would not be smaller.
constexpr std::size_t min_run = 4;

// The loop that a run may belong to: `count` times `node`.
struct repeated_node {
    std::uint32_t node;
    std::uint64_t count;
    std::int64_t step;
};

repeated_node as_loop(const nest& nest, const item_run& run)
{
    if (run.count > 1) {
        return {run.item.child, run.count, run.step};
    }
    const nest_node& node = nest.at(run.item.child);
    if (node.is_block() || node.num_items != 1) {
        return {run.item.child, 1, 0};
    }
    const nest_item& only = nest.items_of(node)[0];
    return {only.child, node.count, only.stride};
}

std::optional<item_run> join_repeated(const item_run& a, const repeated_node& first, const item_run& b,
                                      const repeated_node& second)
{
    if (first.node != second.node || (first.count == 1 && second.count == 1)) {
        return std::nullopt;
    }
    const std::int64_t step = first.count > 1 ? first.step : second.step;
    std::int64_t travel, end;
    std::uint64_t count;
    if ((second.count > 1 && second.step != step) || !checked::mul(first.count, step, travel) ||
        !checked::add(a.item.offset, travel, end) || end != b.item.offset ||
        !checked::add(first.count, second.count, count)) {
        return std::nullopt;
    }
    item_run joined   = a;
    joined.item.child = first.node;
    joined.count      = count;
    joined.step       = step;
    return joined;
}

std::optional<item_run> join_blocks(nest& nest, const item_run& a, const item_run& b)
{
    const nest_node& first  = nest.at(a.item.child);
    const nest_node& second = nest.at(b.item.child);
    std::int64_t end;
    if (a.count != 1 || b.count != 1 || !first.is_block() || !second.is_block() ||
        !checked::add(a.item.offset, first.ub, end) || end != b.item.offset ||
        first.packed_length + second.packed_length > limits::max_length) {
        return std::nullopt;
    }
    item_run joined   = a;
    joined.item.child = nest.block(first.packed_length + second.packed_length);
    return joined;
}

std::optional<item_run> join(nest& nest, const item_run& a, const item_run& b)
{
    if (a.item.source != b.item.source || a.item.stride != b.item.stride) {
        return std::nullopt;
    }
    if (auto joined = join_blocks(nest, a, b)) {
        return joined;
    }
    const repeated_node first = as_loop(nest, a), second = as_loop(nest, b);
    if (auto joined = join_repeated(a, first, b, second)) {
        return joined;
    }
    if (b.count == 1) {
        if (auto joined = join_repeated(a, first, b, {b.item.child, 1, 0})) {
            return joined;
        }
    }
    return a.count == 1 ? join_repeated(a, {a.item.child, 1, 0}, b, second) : std::nullopt;
}

// Joins the last min_run single items if they form one run.
bool close_run(std::vector<item_run>& runs)
{
    if (runs.size() < min_run) {
        return false;
    }
    const auto last = std::span(runs).last(min_run);
    std::int64_t step, distance;
    if (!checked::sub(last[1].item.offset, last[0].item.offset, step)) {
        return false;
    }
    for (std::size_t i = 0; i < min_run; ++i) {
        const nest_item& item = last[i].item;
        if (last[i].count != 1 || !same_shape(item, last[0].item)) {
            return false;
        }
        if (i > 0 && (!checked::sub(item.offset, last[i - 1].item.offset, distance) || distance != step)) {
            return false;
        }
    }
    last[0].count = min_run;
    last[0].step  = step;
    runs.resize(runs.size() - (min_run - 1));
    return true;
}

// Whether two items may be one: false is certain.
bool may_join(nest& nest, const nest_item& a, const nest_item& b)
{
    if (a.source != b.source || a.stride != b.stride) {
        return false;
    }
    const nest_node& first = nest.at(a.child);
    return first.is_block() && nest.at(b.child).is_block() ? b.offset - a.offset == first.ub
                                                           : join(nest, {a, 1, 0}, {b, 1, 0}).has_value();
}

// The number of items before the first one that fuse() may have to do something with: all in lists of blocks at random
// places, which are the longest ones.
std::size_t first_to_join(nest& nest, std::span<const nest_item> items)
{
    std::size_t alike = 1; // so many of the last items would be a run
    std::int64_t step = 0;
    for (std::size_t i = 1; i < items.size(); ++i) {
        const nest_item &before = items[i - 1], &item = items[i];
        std::int64_t distance;
        if (!checked::sub(item.offset, before.offset, distance) || may_join(nest, before, item)) {
            return i;
        }
        alike = !same_shape(before, item) ? 1 : alike > 1 && distance == step ? alike + 1 : 2;
        step  = distance;
        if (alike == min_run) {
            return i;
        }
    }
    return items.size();
}

// The length of the shortest repetition of shapes (prefix function of Knuth, Morris and Pratt).
std::size_t shape_period(std::span<const nest_item> items)
{
    if (std::ranges::all_of(items, [&](const nest_item& item) { return same_shape(item, items[0]); })) {
        return 1;
    }
    std::vector<std::uint32_t> border(items.size(), 0);
    for (std::size_t i = 1; i < items.size(); ++i) {
        std::uint32_t length = border[i - 1];
        while (length > 0 && !same_shape(items[i], items[length])) {
            length = border[length - 1];
        }
        border[i] = length + (same_shape(items[i], items[length]) ? 1 : 0);
    }
    return items.size() - border.back();
}

bool moves_by_steps(std::span<const nest_item> items, std::size_t period)
{
    std::int64_t step, before;
    for (std::size_t i = period; i < items.size(); ++i) {
        if (!checked::sub(items[i].offset, items[i - period].offset, step)) {
            return false;
        }
        // Any two cycles differ by some step per item. A loop of two is simpler only if all these steps are equal.
        const std::size_t other = items.size() == 2 * period ? period : i - period;
        if (other >= period &&
            (!checked::sub(items[other].offset, items[other - period].offset, before) || step != before)) {
            return false;
        }
    }
    return true;
}

// In ascending order.
std::vector<std::size_t> divisors_of(std::size_t number)
{
    std::vector<std::size_t> small, large;
    for (std::size_t divisor = 1; divisor * divisor <= number; ++divisor) {
        if (number % divisor == 0) {
            small.push_back(divisor);
            if (divisor * divisor != number) {
                large.push_back(number / divisor);
            }
        }
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

} // namespace

std::optional<std::vector<item_run>> fuse(nest& nest, std::span<const nest_item> items)
{
    const std::size_t first = first_to_join(nest, items);
    if (first == items.size()) {
        return std::nullopt;
    }
    std::vector<item_run> runs;
    runs.reserve(items.size());
    for (const nest_item& item : items.first(first)) {
        runs.push_back({item, 1, 0});
    }
    for (const nest_item& item : items.subspan(first)) {
        runs.push_back({item, 1, 0});
        for (bool changed = true; changed && runs.size() > 1;) {
            changed = false;
            if (auto joined = join(nest, runs[runs.size() - 2], runs.back())) {
                runs.pop_back();
                runs.back() = *joined;
                changed     = true;
            } else if (close_run(runs)) {
                changed = true;
            }
        }
    }
    return runs.size() == items.size() ? std::nullopt : std::optional(std::move(runs));
}

std::size_t find_period(std::span<const nest_item> items)
{
    const std::size_t size = items.size();
    const std::size_t base = shape_period(items);
    if (size % base != 0) {
        return size;
    }
    for (const std::size_t cycles : divisors_of(size / base)) {
        const std::size_t period = base * cycles;
        if (period <= size / 2 && moves_by_steps(items, period)) {
            return period;
        }
    }
    return size;
}

} // namespace ucxl
