#include "plan_walk.h"

#include <algorithm>
#include <format>

namespace ucxl::test
{

namespace
{

using mlx5::key_kind;
using mlx5::plan;
using mlx5::plan_entry;
using mlx5::plan_key;

constexpr std::uint32_t nowhere = UINT32_MAX; // a source that no layout has

// All bytes of each key, piece by piece. Keys refer to earlier ones, so that one pass reads each once, however often it
// is used.
using read_keys = std::vector<std::vector<segment>>;

std::vector<segment> cut(const std::vector<segment>& all, std::uint64_t offset, std::uint64_t length)
{
    std::vector<segment> part;
    std::uint64_t at = 0;
    for (const segment& one : all) {
        if (at >= offset + length) {
            break;
        }
        const std::uint64_t from = std::max(at, offset);
        const std::uint64_t to   = std::min(at + one.length, offset + length);
        if (from < to) {
            part.push_back({one.source, one.offset + static_cast<std::int64_t>(from - at), to - from});
        }
        at += one.length;
    }
    return part;
}

void read_entry(const read_keys& earlier, const plan_entry& entry, std::uint64_t turn, std::vector<segment>& into)
{
    const std::int64_t offset = entry.offset + static_cast<std::int64_t>(turn * entry.stride);
    if (!entry.nested) {
        into.push_back({entry.target, offset, entry.length});
        return;
    }
    const auto part = cut(earlier[entry.target], static_cast<std::uint64_t>(offset), entry.length);
    into.insert(into.end(), part.begin(), part.end());
    // A chunk of a loop may reach past the end of the key with the gap behind its last byte. A device looks only at
    // what is moved, so the gap keeps its place, and a plan in which it is moved is wrong.
    std::uint64_t missing = entry.length;
    for (const segment& one : part) {
        missing -= one.length;
    }
    if (missing > 0) {
        into.push_back({nowhere, 0, missing});
    }
}

std::vector<segment> read_key(const plan& made, const plan_key& key, const read_keys& earlier)
{
    std::vector<segment> all;
    for (std::uint64_t turn = 0; turn < key.repeat_count; ++turn) {
        for (std::size_t i = 0; i < key.num_entries; ++i) {
            read_entry(earlier, made.entries[key.first_entry + i], turn, all);
        }
    }
    return joined(all);
}

std::string broken_entry(const plan& of, std::size_t id, const plan_entry& entry, const mlx5::device_limits& limits)
{
    const plan_key& key = of.keys[id];
    const bool repeat   = key.kind == key_kind::repeat;
    if (entry.length == 0) {
        return "an entry without bytes";
    }
    if (entry.length > (repeat ? limits.max_repeat_bytes : limits.max_list_bytes)) {
        return std::format("an entry of {} bytes", entry.length);
    }
    if (entry.stride > (repeat ? limits.max_repeat_stride : 0)) {
        return std::format("a stride of {}", entry.stride);
    }
    if (entry.nested && (entry.target >= id || entry.offset < 0)) {
        return "a reference to a key that is not earlier, or before its start";
    }
    return "";
}

std::string broken_key(const plan& of, std::size_t id, const mlx5::device_limits& limits)
{
    const plan_key& key  = of.keys[id];
    const bool repeat    = key.kind == key_kind::repeat;
    std::uint64_t length = 0;
    unsigned depth_below = 0;
    const auto first     = of.entries.begin() + static_cast<std::ptrdiff_t>(key.first_entry);
    const std::vector own(first, first + static_cast<std::ptrdiff_t>(key.num_entries));
    for (const plan_entry& entry : own) {
        if (std::string broken = broken_entry(of, id, entry, limits); !broken.empty()) {
            return broken;
        }
        length += entry.length * key.repeat_count;
        depth_below = std::max<unsigned>(depth_below, entry.nested ? of.keys[entry.target].depth : 0);
    }
    if (own.empty() || own.size() > (repeat ? limits.max_repeat_entries : limits.max_list_entries)) {
        return std::format("{} entries", own.size());
    }
    if (key.octowords % 4 != 0 || key.octowords < own.size() + (repeat ? 1 : 0)) {
        return std::format("{} octowords for {} entries", key.octowords, own.size());
    }
    if (repeat ? !limits.repeat_blocks || key.repeat_count < 2 : key.repeat_count != 1) {
        return std::format("{} turns", key.repeat_count);
    }
    if (key.length != length || key.depth != depth_below + 1 || key.depth > limits.max_nesting) {
        return std::format("length {} or depth {}", key.length, key.depth);
    }
    if (key.kind == key_kind::ksm) {
        const std::uint64_t size = std::uint64_t{1} << key.log_entity_size;
        const bool uniform =
            std::all_of(own.begin(), own.end() - 1, [&](const plan_entry& entry) { return entry.length == size; });
        if (!limits.ksm || !uniform || own.back().length > size) {
            return "entities of different sizes";
        }
    }
    return "";
}

const char* name_of(key_kind kind)
{
    return kind == key_kind::klm ? "klm" : kind == key_kind::ksm ? "ksm" : "repeat";
}

} // namespace

std::vector<segment> segments_of(const mlx5::plan& of)
{
    read_keys keys;
    for (const plan_key& key : of.keys) {
        keys.push_back(read_key(of, key, keys));
    }
    return keys.back();
}

std::string broken_rule(const mlx5::plan& of, const mlx5::device_limits& limits)
{
    if (of.keys.empty() || of.keys.size() > limits.max_keys || of.entries.size() > limits.max_entries) {
        return std::format("{} keys, {} entries", of.keys.size(), of.entries.size());
    }
    if (of.root().octowords > limits.max_root_octowords) {
        return std::format("{} octowords of the last key", of.root().octowords);
    }
    for (std::size_t id = 0; id < of.keys.size(); ++id) {
        if (std::string broken = broken_key(of, id, limits); !broken.empty()) {
            return std::format("key {}: {}", id, broken);
        }
    }
    return "";
}

std::string to_string(const mlx5::plan& of)
{
    std::string text;
    for (std::size_t id = 0; id < of.keys.size(); ++id) {
        const plan_key& key = of.keys[id];
        text += std::format("{}: {}", id, name_of(key.kind));
        if (key.kind == key_kind::repeat) {
            text += std::format(" x{}", key.repeat_count);
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(key.num_entries, 8); ++i) {
            const plan_entry& entry = of.entries[key.first_entry + i];
            text += std::format(" {}{}+{}:{}", entry.nested ? "key" : "src", entry.target, entry.offset, entry.length);
            if (key.kind == key_kind::repeat) {
                text += std::format("/{}", entry.stride);
            }
        }
        text += key.num_entries > 8 ? std::format(" ... ({})\n", key.num_entries) : "\n";
    }
    return text;
}

} // namespace ucxl::test
