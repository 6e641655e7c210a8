#include "memory_pieces.h"

#include "ucs/layout/build.h"
#include "ucs/layout/walk.h"

#include <algorithm>
#include <format>

namespace ucxl::mlx5
{

namespace
{

// Gaps up to this are registered along: a registration costs about as much as pinning some hundred pages.
constexpr std::uint64_t longest_gap = std::uint64_t{1} << 20;
// A source is taken whole unless most of a large range is gaps.
constexpr std::uint64_t always_whole = std::uint64_t{1} << 28;
constexpr std::uint64_t widest       = 64; // range over described bytes
constexpr std::size_t most_groups    = 65536;
constexpr std::uint64_t most_blocks  = std::uint64_t{1} << 22;

} // namespace

bool is_scattered(const layout& layout)
{
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        const auto& bounds = layout.bounds(source);
        const auto length  = bounds.true_length();
        if (length > always_whole && length / widest > layout.packed_length()) {
            return true;
        }
    }
    return false;
}

memory_pieces whole_sources(const layout_ptr& layout, std::span<std::byte* const> bases)
{
    memory_pieces pieces{.shape = layout, .origins = {}, .ranges = {}};
    for (std::uint32_t source = 0; source < layout->num_sources(); ++source) {
        const auto& bounds = layout->bounds(source);
        const auto origin  = reinterpret_cast<std::uintptr_t>(bases[source]);
        pieces.origins.push_back(origin);
        pieces.ranges.push_back(bounds.true_ub > bounds.true_lb
                                    ? memory_range{origin + static_cast<std::uint64_t>(bounds.true_lb),
                                                   origin + static_cast<std::uint64_t>(bounds.true_ub)}
                                    : memory_range{});
    }
    return pieces;
}

result<memory_pieces> groups_of_blocks(const layout& layout, std::span<std::byte* const> bases)
{
    const std::uint64_t num_blocks = layout.packed_length() == 0 ? 0 : layout.root_node().num_blocks;
    if (num_blocks > most_blocks) {
        return fail(errc::exceeds_limit,
                    std::format("{} blocks far apart are over the limit of {}", num_blocks, most_blocks));
    }
    std::vector<memory_range> blocks;
    for_each_block(layout, 0, layout.packed_length(), [&](const placed_block& block) {
        const auto start =
            reinterpret_cast<std::uintptr_t>(bases[block.source]) + static_cast<std::uint64_t>(block.offset);
        blocks.push_back({start, start + block.length});
    });
    std::vector<memory_range> sorted = blocks;
    std::ranges::sort(sorted, {}, &memory_range::start);
    memory_pieces pieces;
    for (const memory_range& block : sorted) {
        if (pieces.ranges.empty() || block.start > pieces.ranges.back().end + longest_gap) {
            pieces.ranges.push_back(block);
        } else {
            pieces.ranges.back().end = std::max(pieces.ranges.back().end, block.end);
        }
    }
    if (pieces.ranges.size() > most_groups) {
        return fail(errc::exceeds_limit, std::format("{} groups of blocks far apart are over the limit of {}",
                                                     pieces.ranges.size(), most_groups));
    }
    std::vector<iov_part> parts;
    parts.reserve(blocks.size());
    for (const memory_range& block : blocks) {
        const auto after = std::ranges::upper_bound(pieces.ranges, block.start, {}, &memory_range::start);
        const auto group = static_cast<std::uint32_t>(after - pieces.ranges.begin() - 1);
        iov_part& part   = parts.emplace_back();
        part.source      = group;
        part.offset      = static_cast<std::int64_t>(block.start - pieces.ranges[group].start);
        part.item.length = block.length();
    }
    pieces.shape = UCXL_TRY(make_iov(parts));
    for (const memory_range& range : pieces.ranges) {
        pieces.origins.push_back(range.start);
    }
    return pieces;
}

} // namespace ucxl::mlx5
