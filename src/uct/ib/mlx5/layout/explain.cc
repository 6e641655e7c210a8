#include "explain.h"

#include <algorithm>
#include <format>

namespace ucxl::mlx5
{

namespace
{

// The time to copy a block from memory that is not in a cache, rounded. Blocks below about 64 bytes cost less to copy
// than to translate.
constexpr double pack_block_ns = 8;
constexpr double pack_byte_ns  = 0.25;

// A copied window costs messages, buffers and a second copy on the other side, whatever its size. Copying takes a CPU
// and stands before the transfer, while the device follows a layout during the transfer. So a key may take longer than
// a copy and is still the better choice for a window.
constexpr double copied_window_ns = 1000;
constexpr double cpu_is_dear      = 2;

// How much of a plan is listed; the rest is only counted.
constexpr std::size_t listed_keys    = 8;
constexpr std::size_t listed_entries = 4;

std::string line(std::string_view name, const std::string& text)
{
    return std::format("{:<15}{}\n", name, text);
}

std::string in_us(double ns)
{
    return std::format("{:.1f} us", ns / 1000);
}

double following_ns(const plan_cost& cost)
{
    return estimated_ns(cost) - estimated_ns(cost, 0);
}

std::string describe(const plan_cost& cost)
{
    return std::format("{} keys, {} octowords, {} bind requests with their entries, {} that point to them, depth {}",
                       cost.keys, cost.octowords, cost.inline_binds, cost.pointer_binds, cost.depth);
}

std::string describe(const plan_entry& entry, key_kind kind)
{
    const std::string place =
        std::format("{} {} + {}: {} bytes", entry.nested ? "key" : "source", entry.target, entry.offset, entry.length);
    return kind == key_kind::repeat ? std::format("{}, stride {}", place, entry.stride) : place;
}

std::string describe(const plan_key& key)
{
    switch (key.kind) {
    case key_kind::klm:
        return std::format("list of {} entries", key.num_entries);
    case key_kind::ksm:
        return std::format("list of {} entries of {} bytes each", key.num_entries,
                           std::uint64_t{1} << key.log_entity_size);
    case key_kind::repeat:
        return std::format("repeat block of {} entries, {} turns", key.num_entries, key.repeat_count);
    }
    return {};
}

std::string describe_keys(const plan& plan)
{
    std::string text;
    for (std::size_t id = 0; id < std::min(plan.keys.size(), listed_keys); ++id) {
        const plan_key& key = plan.keys[id];
        text += line(std::format("  key {}", id), std::format("{}, {} bytes", describe(key), key.length));
        for (std::size_t i = 0; i < std::min(key.num_entries, listed_entries); ++i) {
            text += line("", "  " + describe(plan.entries[key.first_entry + i], key.kind));
        }
        if (key.num_entries > listed_entries) {
            text += line("", std::format("  and {} more", key.num_entries - listed_entries));
        }
    }
    if (plan.keys.size() > listed_keys) {
        text += line("", std::format("and {} more keys", plan.keys.size() - listed_keys));
    }
    return text;
}

std::string describe(const misfit& one)
{
    switch (one.cause) {
    case misfit::reason::not_supported:
        return "repeat block: the device has none";
    case misfit::reason::turns:
        return std::format("repeat block: {} turns are over the limit of {}", one.value, one.limit);
    case misfit::reason::entries:
        return std::format("repeat block: {} entries are over the limit of {}", one.value, one.limit);
    case misfit::reason::stride:
        return std::format("repeat block: a stride of {} is not from 0 to {}", one.value, one.limit);
    case misfit::reason::length:
        return std::format("repeat block: a block of {} bytes is over the limit of {}", one.value, one.limit);
    }
    return {};
}

// Describes the other way to lower, if it was not chosen.
std::string describe_other(std::string_view name, const result<plan>& other, const plan* chosen)
{
    if (!other) {
        return line("rejected", std::format("{}: {}", name, other.error().message));
    }
    if (chosen == nullptr || other->keys.size() != chosen->keys.size() || other->entries != chosen->entries) {
        return line("rejected", std::format("{}: {}, {} a transfer and binding: dearer", name, describe(other->cost),
                                            in_us(estimated_ns(other->cost))));
    }
    return {};
}

std::string describe_rejected(const layout& layout, const device_limits& limits, const result<plan>& chosen)
{
    const auto nested     = lower_nested(layout, limits);
    const plan* const its = chosen ? &*chosen : nullptr;
    std::string text;
    for (const misfit& one : nested ? nested->misfits : std::vector<misfit>()) {
        text += line("rejected", describe(one));
    }
    return text + describe_other("keys that follow the loops", nested, its) +
           describe_other("list of all blocks", lower_flat(layout, limits), its);
}

// What UCX_LAYOUT_KEYS_WINDOWS=auto makes of a window of this layout.
std::string describe_window(const layout& layout, device_limits limits)
{
    limits.max_root_octowords = window_key_octowords;
    const auto preferred =
        layout.packed_length() == 0
            ? fail(errc::unsupported, "the window is empty")
            : lower(layout, limits).and_then([&](const plan& its) { return prefer_key_for_window(its.cost, layout); });
    return line("window", preferred ? "key" : "copied, because " + preferred.error().message);
}

} // namespace

double packing_ns(const layout& layout)
{
    return pack_block_ns * static_cast<double>(layout.blocks().count) +
           pack_byte_ns * static_cast<double>(layout.packed_length());
}

bool is_worth_a_key(const plan_cost& cost, const layout& layout)
{
    return following_ns(cost) <= packing_ns(layout);
}

result<void> prefer_key_for_window(const plan_cost& cost, const layout& layout)
{
    if (following_ns(cost) <= cpu_is_dear * packing_ns(layout) + copied_window_ns) {
        return {};
    }
    return fail(errc::unsupported, std::format("the device would follow {} translations; copying {} blocks is faster",
                                               cost.translations, layout.blocks().count));
}

std::string explain(const layout& layout, const device_limits& limits)
{
    const auto created = lower(layout, limits);
    if (!created) {
        return line("plan", "none: " + created.error().message) + describe_rejected(layout, limits, created) +
               line("advice", "pack: the device cannot follow this layout") + describe_window(layout, limits);
    }
    const double bind = estimated_ns(created->cost, 0);
    const double walk = following_ns(created->cost);
    std::string text  = line("plan", describe(created->cost)) + describe_keys(*created);
    text += line("translations", std::format("{} followed when all is moved once", created->cost.translations));
    text += line("estimate", std::format("binding {}, following {} a transfer; packing takes a CPU {}", in_us(bind),
                                         in_us(walk), in_us(packing_ns(layout))));
    text += describe_rejected(layout, limits, created);
    return text +
           line("advice", is_worth_a_key(created->cost, layout)
                              ? "a key, bound once and used often"
                              : "pack instead, unless the CPU has better to do: following the blocks takes the "
                                "device longer than copying takes the CPU") +
           describe_window(layout, limits);
}

} // namespace ucxl::mlx5
