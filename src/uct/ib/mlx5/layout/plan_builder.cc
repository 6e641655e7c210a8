#include "plan_builder.h"

#include <algorithm>
#include <format>

#include "reachable.h"
#include "sys/hash.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t octoword_group = 4; // translation entries come in groups of 64 bytes

std::uint32_t padded_octowords(std::size_t entries)
{
    return static_cast<std::uint32_t>((entries + octoword_group - 1) / octoword_group * octoword_group);
}

std::uint64_t hash_of(const plan_key& key, std::span<const plan_entry> entries)
{
    std::uint64_t hash = mix(mix(static_cast<std::uint64_t>(key.kind)) ^ key.repeat_count);
    for (const plan_entry& entry : entries) {
        hash = mix(hash ^ (entry.target * 2 + (entry.nested ? 1 : 0)));
        hash = mix(hash ^ static_cast<std::uint64_t>(entry.offset));
        hash = mix(mix(hash ^ entry.length) ^ entry.stride);
    }
    return hash;
}

plan_entry entry_for(const extent_of& piece)
{
    return {piece.space.key, piece.space.target, piece.offset, piece.length, 0};
}

std::uint64_t pieces_of(std::uint64_t length, std::uint64_t max_bytes)
{
    return length / max_bytes + (length % max_bytes != 0 ? 1 : 0);
}

// Appends entries for the whole range, each short enough for its field.
void append_pieces(const extent_of& whole, std::uint64_t max_bytes, std::vector<plan_entry>& entries)
{
    for (std::uint64_t done = 0; done < whole.length;) {
        const std::uint64_t length = std::min(whole.length - done, max_bytes);
        entries.push_back(entry_for({whole.space, whole.offset + static_cast<std::int64_t>(done), length}));
        done += length;
    }
}

} // namespace

std::unexpected<error> plan_builder::too_many_entries(std::uint64_t wanted) const
{
    return fail(errc::exceeds_limit,
                std::format("{} translation entries are over the limit of {}", wanted, _limits.max_entries));
}

result<void> plan_builder::note_work(std::uint64_t pieces)
{
    _work += pieces;
    if (_work / max_work_per_entry > _limits.max_entries) {
        return fail(errc::exceeds_limit, std::format("{} pieces looked at are over the limit of {} times {} entries",
                                                     _work, max_work_per_entry, _limits.max_entries));
    }
    return {};
}

std::optional<misfit> plan_builder::misfit_of(std::uint64_t count, std::span<const run> runs) const
{
    using enum misfit::reason;
    if (!_limits.repeat_blocks) {
        return misfit{not_supported, 0, 0};
    }
    if (count > _limits.max_repeat_count) {
        return misfit{turns, static_cast<std::int64_t>(count), _limits.max_repeat_count};
    }
    if (runs.size() > _limits.max_repeat_entries) {
        return misfit{entries, static_cast<std::int64_t>(runs.size()), _limits.max_repeat_entries};
    }
    for (const run& one : runs) {
        if (one.stride < 0 || static_cast<std::uint64_t>(one.stride) > _limits.max_repeat_stride) {
            return misfit{stride, one.stride, _limits.max_repeat_stride};
        }
        if (one.first.length > _limits.max_repeat_bytes) {
            return misfit{length, static_cast<std::int64_t>(one.first.length), _limits.max_repeat_bytes};
        }
    }
    return std::nullopt;
}

bool plan_builder::fits_repeat_block(std::uint64_t count, std::span<const run> runs)
{
    const auto found = misfit_of(count, runs);
    if (found && std::ranges::find(_plan.misfits, found->cause, &misfit::cause) == _plan.misfits.end()) {
        _plan.misfits.push_back(*found);
    }
    return !found && count > 1;
}

plan_builder::placed plan_builder::interleave(std::uint64_t count, std::span<const run> runs)
{
    UCXL_TRY(note_work(runs.size()));
    if (runs.size() == 1 && runs[0].stride == static_cast<std::int64_t>(runs[0].first.length)) {
        return extent_of{runs[0].first.space, runs[0].first.offset, runs[0].first.length * count};
    }
    if (fits_repeat_block(count, runs)) {
        return repeat_block(count, runs);
    }
    if (runs.size() > _limits.max_entries || count > _limits.max_entries / runs.size()) {
        return too_many_entries(count * runs.size());
    }
    std::vector<extent_of> pieces;
    pieces.reserve(count * runs.size());
    for (std::uint64_t turn = 0; turn < count; ++turn) {
        for (const run& one : runs) {
            const std::int64_t offset = one.first.offset + static_cast<std::int64_t>(turn) * one.stride;
            pieces.push_back({one.first.space, offset, one.first.length});
        }
    }
    return concatenate(pieces);
}

plan_builder::placed plan_builder::concatenate(std::span<const extent_of> pieces)
{
    UCXL_TRY(note_work(pieces.size()));
    std::vector<extent_of> joined;
    joined.reserve(pieces.size());
    for (const extent_of& piece : pieces) {
        if (!joined.empty() && joined.back().space == piece.space &&
            joined.back().offset + static_cast<std::int64_t>(joined.back().length) == piece.offset) {
            joined.back().length += piece.length;
        } else {
            joined.push_back(piece);
        }
    }
    if (joined.size() == 1) {
        return joined[0];
    }
    return list_of(joined);
}

// A list that is too long becomes a list of lists, as deep as needed.
plan_builder::placed plan_builder::list(std::span<const plan_entry> entries)
{
    std::vector<plan_entry> parts;
    while (entries.size() > _limits.max_list_entries) {
        std::vector<plan_entry> shorter;
        for (std::size_t first = 0; first < entries.size(); first += _limits.max_list_entries) {
            const auto some =
                entries.subspan(first, std::min<std::size_t>(_limits.max_list_entries, entries.size() - first));
            const placed part = list(some);
            if (!part) {
                return part;
            }
            append_pieces(*part, _limits.max_list_bytes, shorter);
        }
        if (shorter.size() >= entries.size()) {
            return too_many_entries(entries.size());
        }
        parts   = std::move(shorter);
        entries = parts;
    }
    plan_key key;
    if (uniform_entities(entries, key.log_entity_size)) {
        key.kind = key_kind::ksm;
    }
    for (const plan_entry& entry : entries) {
        key.length += entry.length;
    }
    key.octowords = padded_octowords(entries.size());
    return add_key(key, entries);
}

bool plan_builder::uniform_entities(std::span<const plan_entry> entries, std::uint8_t& log_size) const
{
    const std::uint64_t length = entries.front().length;
    if (!_limits.ksm || entries.size() < 2 || !std::has_single_bit(length)) {
        return false;
    }
    const auto log = static_cast<unsigned>(std::countr_zero(length));
    if (log < _limits.min_log_entity_size || log > _limits.max_log_entity_size) {
        return false;
    }
    const auto inner = entries.first(entries.size() - 1);
    if (entries.back().length > length ||
        !std::ranges::all_of(inner, [&](const plan_entry& entry) { return entry.length == length; })) {
        return false;
    }
    log_size = static_cast<std::uint8_t>(log);
    return true;
}

plan_builder::placed plan_builder::repeat_block(std::uint64_t count, std::span<const run> runs)
{
    plan_key key;
    key.kind         = key_kind::repeat;
    key.repeat_count = static_cast<std::uint32_t>(count);
    key.octowords    = padded_octowords(runs.size() + 1);
    std::vector<plan_entry> entries;
    entries.reserve(runs.size());
    for (const run& one : runs) {
        plan_entry entry = entry_for(one.first);
        entry.stride     = static_cast<std::uint64_t>(one.stride);
        entries.push_back(entry);
        key.length += one.first.length * count;
    }
    return add_key(key, entries);
}

unsigned plan_builder::depth_of(std::span<const plan_entry> entries) const
{
    unsigned below = 0;
    for (const plan_entry& entry : entries) {
        if (entry.nested) {
            below = std::max<unsigned>(below, _plan.keys[entry.target].depth);
        }
    }
    return below + 1;
}

plan_builder::placed plan_builder::add_key(plan_key key, std::span<const plan_entry> entries)
{
    const unsigned depth = depth_of(entries);
    if (depth > _limits.max_nesting) {
        return fail(errc::exceeds_limit, std::format("keys nested {} deep are over the limit "
                                                     "of {}",
                                                     depth, _limits.max_nesting));
    }
    const std::uint64_t hash = hash_of(key, entries);
    for (auto [found, end] = _by_hash.equal_range(hash); found != end; ++found) {
        const plan_key& twin = _plan.keys[found->second];
        const auto its       = std::span(_plan.entries).subspan(twin.first_entry, twin.num_entries);
        if (twin.kind == key.kind && twin.repeat_count == key.repeat_count && std::ranges::equal(its, entries)) {
            return extent_of{{true, found->second}, 0, twin.length};
        }
    }
    if (_plan.keys.size() >= _limits.max_keys) {
        return fail(errc::exceeds_limit,
                    std::format("{} keys are over the limit of {}", _plan.keys.size() + 1, _limits.max_keys));
    }
    if (entries.size() > _limits.max_entries - _plan.entries.size()) {
        return too_many_entries(_plan.entries.size() + entries.size());
    }
    key.depth       = static_cast<std::uint8_t>(depth);
    key.first_entry = _plan.entries.size();
    key.num_entries = entries.size();
    const auto id   = static_cast<std::uint32_t>(_plan.keys.size());
    _plan.entries.insert(_plan.entries.end(), entries.begin(), entries.end());
    _plan.keys.push_back(key);
    _by_hash.emplace(hash, id);
    return extent_of{{true, id}, 0, key.length};
}

plan_builder::placed plan_builder::list_of(std::span<const extent_of> pieces)
{
    std::uint64_t count = 0;
    for (const extent_of& piece : pieces) {
        count += pieces_of(piece.length, _limits.max_list_bytes);
        if (count > _limits.max_entries) {
            return too_many_entries(count);
        }
    }
    UCXL_TRY(note_work(count)); // equal lists become one key, so the limit of a plan's entries does not count them
    std::vector<plan_entry> entries;
    entries.reserve(count);
    for (const extent_of& piece : pieces) {
        append_pieces(piece, _limits.max_list_bytes, entries);
    }
    return list(entries);
}

bool plan_builder::fits_root(const plan_key& key) const
{
    return key.octowords <= _limits.max_root_octowords;
}

result<plan> plan_builder::finish(const extent_of& whole)
{
    placed root = whole;
    if (!whole.space.key || whole.offset != 0 || whole.length != _plan.keys[whole.space.target].length) {
        root = list_of(std::span(&whole, 1));
    }
    // If a key is too long for the room, a short one goes over it: all keys below are as long as the device allows.
    if (root && !fits_root(_plan.keys[root->space.target])) {
        root = list_of(std::span(&*root, 1));
    }
    if (!root) {
        return std::unexpected(root.error());
    }
    if (const plan_key& last = _plan.keys[root->space.target]; !fits_root(last)) {
        return fail(
            errc::exceeds_limit,
            std::format("{} bytes take {} entries of the region's own key, more than its room for {} (max_entries)",
                        last.length, last.num_entries, _limits.max_root_octowords));
    }
    return reachable_from(_plan, root->space.target, _limits);
}

} // namespace ucxl::mlx5
