#include "atomic_words.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "ucs/layout/walk.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint64_t word_bytes = 8;

constexpr bool is_aligned(std::uint64_t value)
{
    return value % word_bytes == 0;
}

constexpr bool is_aligned(std::int64_t value)
{
    return value % static_cast<std::int64_t>(word_bytes) == 0;
}

// The caller holds the lock of the domain.
const region* region_behind(const region& region, std::uint32_t key)
{
    const auto found = region.owner().bound.find(key);
    return found == region.owner().bound.end() ? nullptr : found->second;
}

bool is_made_of_words(const layout& layout)
{
    return is_aligned(layout.root().offset) &&
           std::ranges::all_of(layout.nodes(), [](const layout_node& node) { return is_aligned(node.cycle_length); }) &&
           std::ranges::all_of(layout.entries(), [&](const layout_entry& entry) {
               return is_aligned(entry.offset) && is_aligned(entry.stride) && is_aligned(entry.packed_offset);
           });
}

// Many regions may lie over the same one, which is looked at once.
bool has_whole_words_inside(const region& top)
{
    std::vector<const region*> unvisited{&top};
    std::unordered_set<const region*> found{&top};
    const auto shows_words = [&](const region& key) {
        return key.shown() != nullptr && is_made_of_words(*key.shown()) &&
               std::ranges::all_of(key.bases(), [&](const source_base& base) {
                   const region* const below = region_behind(key, base.lkey);
                   if (below != nullptr && found.insert(below).second) {
                       unvisited.push_back(below);
                   }
                   return is_aligned(base.address - (below == nullptr ? 0 : below->address()));
               });
    };
    while (!unvisited.empty()) {
        const region* const next = unvisited.back();
        unvisited.pop_back();
        if (!shows_words(*next)) {
            return false;
        }
    }
    return true;
}

// Where a word of a region is in what lies below.
struct lower_word {
    const region* below; // null: memory
    std::uint64_t address;
};

result<lower_word> word_below(const region& key, std::uint64_t address)
{
    const std::uint64_t offset = address - key.address();
    if (offset >= key.length() || key.length() - offset < word_bytes) {
        return fail(errc::invalid_param,
                    std::format("8 bytes at 0x{:x} are not within the region's {} bytes", address, key.length()));
    }
    placed_block first{};
    for_each_block(*key.shown(), offset, word_bytes, [&](const placed_block& block) {
        first = block;
        return false;
    });
    if (first.length != word_bytes) {
        return fail(errc::invalid_param,
                    std::format("the word at 0x{:x} is split: a block ends after {} bytes", address, first.length));
    }
    const source_base& base    = key.bases()[first.source];
    const std::uint64_t behind = base.address + static_cast<std::uint64_t>(first.offset);
    const region* const below  = region_behind(key, base.lkey);
    if (below == nullptr && !is_aligned(behind)) {
        return fail(
            errc::invalid_param,
            std::format("the word at 0x{:x} is at 0x{:x} in memory, which is no multiple of 8", address, behind));
    }
    return lower_word{below, behind};
}

} // namespace

bool has_whole_words(const region& region)
{
    const std::lock_guard guard(region.owner().lock);
    return has_whole_words_inside(region) && is_aligned(region.address());
}

result<void> check_word(const region& region, std::uint64_t address)
{
    if (!region.options().rights.remote_atomic) {
        return fail(errc::unsupported, "the region was made without IBV_ACCESS_REMOTE_ATOMIC");
    }
    if (!is_aligned(address)) {
        return fail(errc::invalid_param, std::format("address 0x{:x} is no multiple of 8", address));
    }
    const std::lock_guard guard(region.owner().lock);
    if (region.shown() == nullptr) {
        return fail(errc::invalid_param, "the region has no layout");
    }
    // No region leads back to itself, so this ends.
    for (lower_word word{&region, address}; word.below != nullptr;) {
        word = UCXL_TRY(word_below(*word.below, word.address));
    }
    return {};
}

} // namespace ucxl::mlx5
