// What must hold for every layout, over random ones of every kind.
#include "common/random_spec.h"

#include "ucs/layout/walk.h"

#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

constexpr int num_layouts = 20000;

// Calls check(random, spec, layout) for random layouts of varied size. The seed of a failing one is in the message.
template <typename Fn>
void for_random_layouts(int number, overlapping policy, Fn&& check)
{
    for (int i = 0; i < number && !::testing::Test::HasFailure(); ++i) {
        const std::uint64_t seed = run_seed() + static_cast<std::uint64_t>(i);
        random from(seed);
        random_options options;
        options.max_blocks  = 1 + from.below(from.one_in(8) ? 1000 : 64);
        options.max_bytes   = options.max_blocks * (1 + from.below(64));
        options.num_sources = from.one_in(2) ? 1 : 4;
        options.overlapping = policy;
        const spec_ptr of   = random_spec(from, options);
        SCOPED_TRACE("UCXL_TEST_SEED=" + std::to_string(seed) + " " + to_string(*of));
        auto made = build(*of);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        check(from, *of, **made);
    }
}

TEST(layout_properties, blocks_are_those_of_the_reference_walker)
{
    for_random_layouts(num_layouts, overlapping::anyhow, [](random&, const spec& of, const layout& made) {
        EXPECT_EQ(to_string(segments_of(made)), to_string(segments_of(of)));
        EXPECT_EQ(made.packed_length(), packed_length_of(of));
    });
}

TEST(layout_properties, bounds_are_those_of_the_reference_walker)
{
    for_random_layouts(num_layouts, overlapping::anyhow, [](random&, const spec& of, const layout& made) {
        const auto expected = bounds_of(of);
        ASSERT_EQ(made.num_sources(), num_sources_of(of));
        for (std::uint32_t source = 0; source < made.num_sources(); ++source) {
            const auto found = expected.find(source);
            EXPECT_EQ(made.bounds(source), found == expected.end() ? layout_bounds{} : found->second) << source;
        }
        EXPECT_EQ(made.extent(), extent_of(of));
    });
}

} // namespace
} // namespace ucxl::test
