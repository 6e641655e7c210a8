#include "atomic_words.h"

#include <algorithm>
#include <mutex>

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

// Under the lock of the domain.
const region* region_behind(const region& of, std::uint32_t key)
{
    const auto found = of.owner().bound.find(key);
    return found == of.owner().bound.end() ? nullptr : found->second;
}

bool is_made_of_words(const layout& of)
{
    return is_aligned(of.root().offset) &&
           std::ranges::all_of(of.nodes(), [](const layout_node& node) { return is_aligned(node.cycle_length); }) &&
           std::ranges::all_of(of.entries(), [&](const layout_entry& entry) {
               return is_aligned(entry.offset) && is_aligned(entry.stride) && is_aligned(entry.packed_offset);
           });
}

bool has_whole_words_inside(const region& of)
{
    return of.shown() != nullptr && is_made_of_words(*of.shown()) &&
           std::ranges::all_of(of.bases(), [&](const source_base& base) {
               const region* const below = region_behind(of, base.lkey);
               return below == nullptr ? is_aligned(base.address)
                                       : is_aligned(base.address - below->address()) && has_whole_words_inside(*below);
           });
}

result<void> check_word_inside(const region& of, std::uint64_t address)
{
    const std::uint64_t offset = address - of.address();
    if (offset >= of.length() || of.length() - offset < word_bytes) {
        return fail(errc::invalid_param,
                    std::format("8 bytes at 0x{:x} are not within the region's {} bytes", address, of.length()));
    }
    placed_block first{};
    for_each_block(*of.shown(), offset, word_bytes, [&](const placed_block& block) {
        first = block;
        return false;
    });
    if (first.length != word_bytes) {
        return fail(errc::invalid_param,
                    std::format("the word at 0x{:x} is split: a block ends after {} bytes", address, first.length));
    }
    const source_base& base    = of.bases()[first.source];
    const std::uint64_t behind = base.address + static_cast<std::uint64_t>(first.offset);
    const region* const below  = region_behind(of, base.lkey);
    if (below != nullptr) {
        return check_word_inside(*below, behind);
    }
    if (!is_aligned(behind)) {
        return fail(
            errc::invalid_param,
            std::format("the word at 0x{:x} is at 0x{:x} in memory, which is no multiple of 8", address, behind));
    }
    return {};
}

} // namespace

bool has_whole_words(const region& of)
{
    const std::lock_guard guard(of.owner().lock);
    return has_whole_words_inside(of) && is_aligned(of.address());
}

result<void> check_word(const region& of, std::uint64_t address)
{
    if (!of.options().rights.remote_atomic) {
        return fail(errc::unsupported, "the region was made without IBV_ACCESS_REMOTE_ATOMIC");
    }
    if (!is_aligned(address)) {
        return fail(errc::invalid_param, std::format("address 0x{:x} is no multiple of 8", address));
    }
    const std::lock_guard guard(of.owner().lock);
    if (of.shown() == nullptr) {
        return fail(errc::invalid_param, "the region has no layout");
    }
    return check_word_inside(of, address);
}

} // namespace ucxl::mlx5
