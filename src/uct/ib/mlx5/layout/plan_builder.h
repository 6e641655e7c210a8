// Makes the keys of a plan: splits ranges that are too long for a field, joins contiguous ranges, nests lists that are
// too long, and shares equal keys. Refuses what exceeds the limits.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lower.h"

namespace ucxl::mlx5
{

// Memory of a source, or the address space of a key of the plan.
struct address_space {
    bool key             = false;
    std::uint32_t target = 0;

    bool operator==(const address_space&) const = default;
};

// A contiguous range of an address space.
struct extent_of {
    address_space space;
    std::int64_t offset  = 0;
    std::uint64_t length = 0;
};

// `count` pieces of an address space, each `stride` bytes after the one before.
struct run {
    extent_of first;
    std::int64_t stride = 0;
};

class plan_builder
{
public:
    explicit plan_builder(const device_limits& limits) : _limits(limits) {}

    using placed = result<extent_of>;

    const device_limits& limits() const { return _limits; }
    std::unexpected<error> too_many_entries(std::uint64_t wanted) const;
    // Of all pieces that the plan is made of, also those that join or repeat others and leave no entry. A layout of few
    // bytes may have so many that to look at them takes days.
    result<void> note_work(std::uint64_t pieces);

    // Piece 0 of all runs, then piece 1 of all runs, ... as one range.
    placed interleave(std::uint64_t count, std::span<const run> runs);

    // The pieces in sequence as one range.
    placed concatenate(std::span<const extent_of> pieces);

    // Returns the plan whose last key is that range, which must have a byte.
    result<plan> finish(const extent_of& whole);

private:
    std::optional<misfit> misfit_of(std::uint64_t count, std::span<const run> runs) const;
    bool fits_repeat_block(std::uint64_t count, std::span<const run> runs);
    placed repeat_block(std::uint64_t count, std::span<const run> runs);
    placed list(std::span<const plan_entry> entries);
    placed list_of(std::span<const extent_of> pieces);
    bool fits_root(const plan_key& key) const;
    placed add_key(plan_key key, std::span<const plan_entry> entries);
    bool uniform_entities(std::span<const plan_entry> entries, std::uint8_t& log_size) const;
    unsigned depth_of(std::span<const plan_entry> entries) const;

    static constexpr std::uint64_t max_work_per_entry = 4; // of the most that a plan may have

    const device_limits& _limits;
    std::uint64_t _work = 0;
    plan _plan;
    std::multimap<std::uint64_t, std::uint32_t> _by_hash; // the keys made so far
};

} // namespace ucxl::mlx5
