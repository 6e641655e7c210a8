#include "support/must.h"
#include "support/random.h"
#include "window_helpers.h"

#include <map>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

constexpr std::uint64_t slot = slot_table::slot_length;

std::unique_ptr<slot_table> table_of(std::uint32_t num_slots)
{
    return must(slot_table::create(num_slots));
}

// Only the address of a window matters to the table.
const window* fake_window(std::uintptr_t number)
{
    return reinterpret_cast<const window*>(number * 64);
}

TEST(slot_table, size_classes_on_both_sides)
{
    const auto table = table_of(16);
    for (unsigned shift = slot_table::min_chunk_shift; shift <= slot_table::max_chunk_shift; ++shift) {
        const std::uint64_t chunk = std::uint64_t{1} << shift;
        EXPECT_EQ(table->allocate(chunk)->length, chunk);
        EXPECT_EQ(table->allocate(chunk - 1)->length, chunk);
        EXPECT_EQ(table->allocate(chunk / 2 + 1)->length, chunk);
    }
}

TEST(slot_table, large_ranges_are_whole_slots)
{
    const auto table = table_of(8);
    EXPECT_EQ(table->allocate(slot / 2 + 1)->length, slot);
    EXPECT_EQ(table->allocate(slot)->length, slot);
    EXPECT_EQ(table->allocate(slot + 1)->length, 2 * slot);
    EXPECT_EQ(table->allocate(4 * slot)->length, 4 * slot);
    EXPECT_EQ(table->allocate(1).error().code, errc::no_memory);
}

TEST(slot_table, smallest_range_is_one_chunk)
{
    const auto table = table_of(1);
    EXPECT_EQ(table->allocate(1)->length, 64u << 10);
}

TEST(slot_table, lookup_at_the_edges_of_chunks_and_slots)
{
    const auto table = table_of(8);
    for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{64 << 10}, slot / 2, slot, 3 * slot}) {
        const window_range range = must(table->allocate(length));
        const window* one        = fake_window(length);
        EXPECT_EQ(table->lookup(range.offset), nullptr);
        table->publish(range, one);
        EXPECT_EQ(table->lookup(range.offset), one);
        EXPECT_EQ(table->lookup(range.offset + range.length - 1), one);
        EXPECT_EQ(table->lookup(range.offset + range.length / 2), one);
        if (range.offset > 0) {
            EXPECT_NE(table->lookup(range.offset - 1), one);
        }
        if (range.offset + range.length < 8 * slot) {
            EXPECT_NE(table->lookup(range.offset + range.length), one);
        }
        table->unpublish(range);
        EXPECT_EQ(table->lookup(range.offset), nullptr);
        EXPECT_EQ(table->lookup(range.offset + range.length - 1), nullptr);
        table->release(range);
    }
}

TEST(slot_table, freed_chunk_comes_last)
{
    const auto table         = table_of(1);
    const window_range first = must(table->allocate(1));
    table->release(first);
    for (unsigned i = 1; i < 1024; ++i) {
        ASSERT_NE(table->allocate(1)->offset, first.offset) << i;
    }
    EXPECT_EQ(table->allocate(1)->offset, first.offset);
    EXPECT_FALSE(table->allocate(1).has_value());
}

TEST(slot_table, freed_slot_comes_last)
{
    const auto table         = table_of(4);
    const window_range first = must(table->allocate(slot));
    table->release(first);
    for (unsigned i = 1; i < 4; ++i) {
        ASSERT_NE(table->allocate(slot)->offset, first.offset);
    }
    EXPECT_EQ(table->allocate(slot)->offset, first.offset);
}

TEST(slot_table, run_across_the_place_where_the_search_starts)
{
    const auto table       = table_of(4);
    const window_range one = must(table->allocate(slot));
    const window_range two = must(table->allocate(2 * slot));
    EXPECT_FALSE(table->allocate(2 * slot).has_value());
    table->release(two);
    EXPECT_EQ(table->allocate(3 * slot)->offset, slot);
    table->release(one);
    EXPECT_EQ(table->allocate(slot)->offset, 0u);
}

TEST(slot_table, run_never_goes_over_the_end)
{
    const auto table       = table_of(4);
    const window_range one = must(table->allocate(slot));
    ASSERT_TRUE(table->allocate(2 * slot).has_value());
    table->release(one); // the first and the last slot are free, and the search starts at the last
    EXPECT_FALSE(table->allocate(2 * slot).has_value());
}

TEST(slot_table, exhaustion_names_the_option_and_passes)
{
    const auto table        = table_of(2);
    const window_range both = must(table->allocate(2 * slot));
    const auto none         = table->allocate(1);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, errc::no_memory);
    EXPECT_NE(none.error().message.find("UCX_LAYOUT_ARENA_SIZE"), std::string::npos) << none.error().message;
    EXPECT_FALSE(table->allocate(3 * slot).has_value());
    table->release(both);
    EXPECT_TRUE(table->allocate(1).has_value());
}

TEST(slot_table, slots_of_freed_chunks_are_given_back)
{
    const auto table = table_of(2);
    std::vector<window_range> ranges;
    for (unsigned i = 0; i < 2 * 1024; ++i) {
        ranges.push_back(must(table->allocate(1)));
    }
    EXPECT_FALSE(table->allocate(slot).has_value());
    for (const window_range& range : ranges) {
        EXPECT_FALSE(table->allocate(2 * slot).has_value());
        table->release(range);
    }
    const auto both = table->allocate(2 * slot);
    ASSERT_TRUE(both.has_value());
    table->release(*both);
    EXPECT_TRUE(table->allocate(1).has_value());
    EXPECT_TRUE(table->allocate(slot).has_value());
}

TEST(slot_table, random_allocations_never_overlap)
{
    const std::uint64_t seed = run_seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    ucxl::test::random from(seed);
    const auto table = table_of(32);
    std::map<std::uint64_t, window_range> live;
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (unsigned step = 0; step < 20000; ++step) {
        if (from.one_in(2)) {
            const auto range = table->allocate(1 + from.below(std::uint64_t{1} << (1 + from.below(28))));
            if (range) {
                const auto next = live.lower_bound(range->offset);
                ASSERT_TRUE(next == live.end() || range->offset + range->length <= next->first);
                ASSERT_TRUE(next == live.begin() ||
                            std::prev(next)->first + std::prev(next)->second.length <= range->offset);
                ASSERT_LE(range->offset + range->length, 32 * slot);
                table->publish(*range, fake_window(range->offset + 1));
                live.emplace(range->offset, *range);
            }
        } else if (!live.empty()) {
            const auto one = std::next(live.begin(), static_cast<std::ptrdiff_t>(from.below(live.size())));
            table->unpublish(one->second);
            table->release(one->second);
            live.erase(one);
        }
        const std::uint64_t offset = from.below(32 * slot);
        auto holder                = live.upper_bound(offset);
        const bool inside = holder != live.begin() && (--holder, offset - holder->first < holder->second.length);
        ASSERT_EQ(table->lookup(offset), inside ? fake_window(holder->first + 1) : nullptr);
    }
}

} // namespace
