#include "reachable.h"

#include <algorithm>
#include <span>

namespace ucxl::mlx5
{

namespace
{

std::span<const plan_entry> entries_of(const plan& whole, const plan_key& key)
{
    return std::span(whole.entries).subspan(key.first_entry, key.num_entries);
}

// Counts the entries that the device walks when the root is moved once. A key that is used through many small ranges is
// walked at least once for each. Otherwise its entries count in proportion to the bytes read from it.
std::uint64_t count_translations(const plan& whole)
{
    std::vector<double> bytes(whole.keys.size());
    std::vector<double> visits(whole.keys.size());
    bytes.back()  = static_cast<double>(whole.root().length);
    visits.back() = 1;
    double total  = 0;
    for (std::size_t id = whole.keys.size(); id-- > 0;) {
        const plan_key& key = whole.keys[id];
        const double pieces = static_cast<double>(key.num_entries) * key.repeat_count;
        const double uses   = bytes[id] / static_cast<double>(key.length);
        total += std::max(visits[id], pieces * uses);
        for (const plan_entry& entry : entries_of(whole, key)) {
            if (entry.nested) {
                bytes[entry.target] += static_cast<double>(entry.length) * key.repeat_count * uses;
                visits[entry.target] += key.repeat_count * uses;
            }
        }
    }
    return static_cast<std::uint64_t>(total);
}

plan_cost cost_of(const plan& whole, const device_limits& limits)
{
    plan_cost cost;
    cost.keys  = whole.keys.size();
    cost.depth = whole.root().depth;
    for (const plan_key& key : whole.keys) {
        const std::size_t header = key.kind == key_kind::repeat ? 1 : 0;
        cost.repeat_blocks += header;
        cost.octowords += key.octowords;
        ++(key.num_entries + header <= limits.max_inline_entries ? cost.inline_binds : cost.pointer_binds);
    }
    cost.translations = count_translations(whole);
    return cost;
}

} // namespace

plan reachable_from(const plan& all, std::uint32_t root, const device_limits& limits)
{
    std::vector<bool> needed(root + 1);
    needed[root] = true;
    for (std::size_t id = needed.size(); id-- > 0;) {
        if (needed[id]) {
            for (const plan_entry& entry : entries_of(all, all.keys[id])) {
                if (entry.nested) {
                    needed[entry.target] = true;
                }
            }
        }
    }
    plan kept;
    std::vector<std::uint32_t> number(needed.size());
    for (std::size_t id = 0; id < needed.size(); ++id) {
        if (!needed[id]) {
            continue;
        }
        number[id]      = static_cast<std::uint32_t>(kept.keys.size());
        plan_key key    = all.keys[id];
        key.first_entry = kept.entries.size();
        for (plan_entry entry : entries_of(all, all.keys[id])) {
            if (entry.nested) {
                entry.target = number[entry.target];
            }
            kept.entries.push_back(entry);
        }
        kept.keys.push_back(key);
    }
    kept.misfits = all.misfits;
    kept.cost    = cost_of(kept, limits);
    return kept;
}

} // namespace ucxl::mlx5
