// For random loop nests and random device limits: a plan means the layout's bytes in the layout's order and keeps every
// limit, or there is a reason why there is none. Plans of every kind have to come up.
#include <array>
#include <cstdio>

#include <gtest/gtest.h>

#include "plan_walk.h"
#include "support/must.h"
#include "support/property.h"
#include "support/random_spec.h"
#include "uct/ib/mlx5/layout/lower.h"

namespace ucxl::test
{
namespace
{

constexpr int num_layouts = 8000;

mlx5::device_limits random_limits(random& from)
{
    mlx5::device_limits limits;
    limits.max_list_entries    = from.one_in(3) ? 2 + static_cast<std::uint32_t>(from.below(30)) : 65536;
    limits.max_repeat_entries  = from.one_in(3) ? 1 + static_cast<std::uint32_t>(from.below(3)) : 1024;
    limits.max_root_octowords  = from.one_in(3) ? 4 + 4 * static_cast<std::uint32_t>(from.below(4)) : 65532;
    limits.max_nesting         = 1 + static_cast<unsigned>(from.below(5));
    limits.repeat_blocks       = !from.one_in(5);
    limits.ksm                 = from.one_in(3);
    limits.min_log_entity_size = static_cast<unsigned>(from.below(5));
    limits.max_list_bytes      = from.one_in(4) ? 1 + from.below(64) : limits.max_list_bytes;
    limits.max_repeat_bytes    = from.one_in(4) ? 1 + from.below(64) : limits.max_repeat_bytes;
    limits.max_repeat_stride   = from.one_in(4) ? from.below(256) : limits.max_repeat_stride;
    limits.max_repeat_count = from.one_in(4) ? 2 + static_cast<std::uint32_t>(from.below(8)) : limits.max_repeat_count;
    limits.max_entries      = from.one_in(8) ? 1 + from.below(64) : limits.max_entries;
    limits.max_keys         = from.one_in(8) ? 1 + from.below(6) : limits.max_keys;
    return limits;
}

struct tally {
    std::array<int, 3> by_kind{};  // of root keys
    std::array<int, 6> by_depth{}; // of plans
    std::array<int, 4> refused{};
};

// In the order of tally::refused.
std::size_t reason_of(const error& error)
{
    const std::array<std::string_view, 4> words{"no bytes", "entries", "keys are", "nested"};
    const auto named = [&](std::string_view word) { return error.message.contains(word); };
    return static_cast<std::size_t>(std::ranges::find_if(words, named) - words.begin());
}

spec_ptr draw(random& from)
{
    random_options options;
    options.max_blocks  = 1 + from.below(from.one_in(8) ? 600 : 48);
    options.max_bytes   = options.max_blocks * (1 + from.below(64));
    options.num_sources = from.one_in(2) ? 1 : 4;
    return random_spec(from, options);
}

void check_one(random& from, const spec& described, tally& counts)
{
    const auto limits = random_limits(from);
    const auto built  = build(described);
    ASSERT_TRUE(built.has_value()) << built.error().message;
    const auto made = from.one_in(4)   ? mlx5::lower_flat(**built, limits)
                      : from.one_in(2) ? mlx5::lower_nested(**built, limits)
                                       : mlx5::lower(**built, limits);
    if (!made) {
        ++counts.refused.at(reason_of(made.error()));
        return;
    }
    ASSERT_EQ(broken_rule(*made, limits), "") << to_string(*made);
    ASSERT_EQ(to_string(segments_of(*made)), to_string(joined(segments_of(**built)))) << to_string(*made);
    ++counts.by_kind[static_cast<std::size_t>(made->root().kind)];
    ++counts.by_depth[made->cost.depth];
}

TEST(lowering_properties, plans_mean_the_layout_and_keep_the_limits)
{
    tally counts;
    for_random_layouts(num_layouts, draw,
                       [&counts](random& from, const spec& described) { check_one(from, described, counts); });
    if (HasFailure()) {
        return; // there are fewer than there should be
    }
    std::printf("roots: %d lists, %d of one size, %d repeat blocks; depth 1: %d, 2: %d, 3: %d, 4: %d, 5: %d\n",
                counts.by_kind[0], counts.by_kind[1], counts.by_kind[2], counts.by_depth[1], counts.by_depth[2],
                counts.by_depth[3], counts.by_depth[4], counts.by_depth[5]);
    std::printf("refused: %d empty, %d too many entries, %d too many keys, %d too deep\n", counts.refused[0],
                counts.refused[1], counts.refused[2], counts.refused[3]);
    for (std::size_t kind = 0; kind < counts.by_kind.size(); ++kind) {
        EXPECT_GT(counts.by_kind[kind], num_layouts / 200) << "kind " << kind;
    }
    for (std::size_t depth = 1; depth < 4; ++depth) {
        EXPECT_GT(counts.by_depth[depth], num_layouts / 200) << "depth " << depth;
    }
    for (std::size_t why = 0; why < counts.refused.size(); ++why) {
        EXPECT_GT(counts.refused[why], 0) << "reason " << why;
    }
}

// The smallest of those in which a chunk reaches past the end of a key below (seeds 7 and 12345).
TEST(lowering_properties, a_gap_past_the_end_of_a_key_moves_nothing)
{
    const auto item      = spec::strided(spec::block(1), {{2, 0}, {2, 2}});
    const auto described = spec::interleaved({{0, 0, spec::contig(2, item), 1, {{2, 0}}}});
    const auto built     = must(build(*described));
    const auto made      = mlx5::lower_nested(*built, {.max_nesting = 5});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(to_string(segments_of(*made)), to_string(joined(segments_of(*built)))) << to_string(*made);
}

} // namespace
} // namespace ucxl::test
