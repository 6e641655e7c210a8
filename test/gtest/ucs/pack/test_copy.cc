#include "sample.h"

#include "support/must.h"
#include "support/property.h"

#include "ucs/pack/pack_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace
{

using namespace ucxl;
using namespace ucxl::test;

struct side {
    sample drawn;
    pack_plan_ptr plan;
    sample_memory memory;

    side(sample chosen, guard_side guard, test::random& numbers)
        : drawn(std::move(chosen)), plan(must(pack_plan::compile(drawn.what))), memory(drawn, guard, numbers)
    {
    }

    std::uint64_t packed_length() const { return drawn.bytes.size(); }
};

// Refills the target first: what was copied before must not hide what is not copied now.
void check_copy(const side& to, std::uint64_t to_offset, const side& from, std::uint64_t from_offset,
                std::uint64_t length, test::random& numbers)
{
    std::vector<std::byte> other(to.packed_length());
    std::ranges::generate(other, [&] { return static_cast<std::byte>(pick(numbers, 0, 255)); });
    to.plan->scatter(to.memory.bases(), 0, other.size(), other.data());
    const auto expected = to.memory.after_write(to.drawn, to_offset, from.memory.read(from.drawn, from_offset, length));
    const auto untouched = from.memory.contents();
    pack_plan::copy(*to.plan, to.memory.bases(), to_offset, *from.plan, from.memory.bases(), from_offset, length);
    ASSERT_EQ(to.memory.contents(), expected) << to_offset << " <- " << from_offset << ", " << length << " bytes\nto\n"
                                              << to.plan->describe() << "\nfrom\n"
                                              << from.plan->describe();
    ASSERT_EQ(from.memory.contents(), untouched);
}

void check_pair(const side& to, const side& from, test::random& numbers, unsigned ranges)
{
    const std::uint64_t both = std::min(to.packed_length(), from.packed_length());
    ASSERT_NO_FATAL_FAILURE(check_copy(to, 0, from, 0, both, numbers));
    for (; ranges > 0; --ranges) {
        const std::uint64_t length = pick(numbers, 0, both);
        ASSERT_NO_FATAL_FAILURE(check_copy(to, pick(numbers, 0, to.packed_length() - length), from,
                                           pick(numbers, 0, from.packed_length() - length), length, numbers));
    }
}

TEST(pack_copy, any_range_between_any_layouts_matches_the_oracle)
{
    for_random_layouts(600, draw_sample, [](test::random& numbers, const spec& described) {
        const side to(sample_of(described), guard_side::back, numbers);
        const side from(sample_of(*draw_sample(numbers)), guard_side::front, numbers);
        check_pair(to, from, numbers, 8);
    });
}

// Both sides have one plan, and every copy has equal offsets.
void check_alike(const spec& described, test::random& numbers, unsigned ranges)
{
    const side to(sample_of(described), guard_side::back, numbers);
    const side from(sample_of(described), guard_side::front, numbers);
    ASSERT_EQ(to.plan, from.plan);
    const std::uint64_t all = to.packed_length();
    ASSERT_NO_FATAL_FAILURE(check_copy(to, 0, from, 0, all, numbers));
    for (; ranges > 0; --ranges) {
        const std::uint64_t length = pick(numbers, 0, all), offset = pick(numbers, 0, all - length);
        ASSERT_NO_FATAL_FAILURE(check_copy(to, offset, from, offset, length, numbers));
    }
}

TEST(pack_copy, any_range_between_memories_of_one_layout_matches_the_oracle)
{
    for_random_layouts(600, draw_sample,
                       [](test::random& numbers, const spec& described) { check_alike(described, numbers, 8); });
}

TEST(pack_copy, all_forms_of_one_layout_meet_whole_and_in_parts)
{
    test::random numbers(run_seed());
    const spec_ptr four = spec::block(4), eight = spec::block(8), odd = spec::block(7), long_block = spec::block(300);
    const auto fields = [](std::vector<std::pair<std::int64_t, spec_ptr>> blocks) {
        std::vector<spec_part> parts;
        for (auto& [offset, item] : blocks) {
            parts.push_back({0, offset, std::move(item), 1, {}});
        }
        return spec::iov(parts);
    };
    const auto rows = [](std::size_t count, const auto& item_of, std::uint32_t sources, std::int64_t apart) {
        std::vector<spec_part> parts;
        for (std::size_t i = 0; i < count; ++i) {
            parts.push_back({.source = static_cast<std::uint32_t>(i) % sources,
                             .offset = static_cast<std::int64_t>(i * 37 % count) * apart,
                             .item   = item_of(i),
                             .dims   = {}});
        }
        return spec::iov(parts);
    };
    const auto arrays_of = [&](std::int64_t stride) {
        return fields({{0, spec::strided(spec::block(12), {{700, stride}})},
                       {12, spec::strided(spec::block(12), {{700, stride}})},
                       {24, spec::strided(eight, {{700, stride}})}});
    };
    const std::vector<spec_ptr> all{
        arrays_of(32), // the arrays of an array of structures: without gaps, and with them
        arrays_of(40),
        spec::strided(arrays_of(32), {{3, 32 * 700 + 8}}),
        spec::strided(fields({{0, eight}, {16, spec::block(12)}, {32, eight}}), {{300, 48}}), // a structure of words
        spec::strided(fields({{0, eight}, {13, odd}, {40, long_block}}), {{50, 400}}),        // and of other blocks
        spec::strided(fields({{0, four}, {2, four}, {200, odd}}), {{100, 220}}),              // that overlap
        rows(
            200, [&](std::size_t i) { return spec::block(1 + i * 7 % 60); }, 1, 64),
        rows(
            200, [&](std::size_t i) { return spec::block(1 + i * 7 % 60); }, 3, 64),
        rows(
            200, [&](std::size_t) { return eight; }, 1, 24),
        rows(
            400, [&](std::size_t i) { return i % 2 == 0 ? spec::block(900) : spec::block(1100); }, 1, 8192), // fetched
        spec::strided(eight, {{40, 24}, {30, 2000}}),
        spec::strided(eight, {{16, 8}, {40, 512}}), // a panel
        spec::strided(eight, {{600, 1024}}),        // far blocks
        spec::strided(long_block, {{30, 512}}),
        spec::strided(rows(
                          5, [&](std::size_t i) { return spec::block(1 + i); }, 1, 16),
                      {{20, 128}, {3, 4000}}),
    };
    for (const spec_ptr& described : all) {
        ASSERT_NO_FATAL_FAILURE(check_alike(*described, numbers, 60));
    }
}

TEST(pack_copy, large_blocks_of_all_forms_meet)
{
    test::random numbers(run_seed());
    const spec_ptr big = spec::block(3000), mid = spec::block(1100), small = spec::block(12);
    std::vector<spec_part> parts;
    for (int i = 0; i < 80; ++i) {
        parts.push_back({.source = static_cast<std::uint32_t>(i % 2),
                         .offset = (i * 33 % 80) * 3100,
                         .item   = i % 3 == 0 ? big : mid,
                         .dims   = {}});
    }
    const std::vector<spec_ptr> all{
        spec::block(60000),
        spec::strided(big, {{20, 3100}}),
        spec::strided(mid, {{5, 20000}, {11, 1101}}),
        spec::strided(small, {{5000, 32}}),
        spec::strided(small, {{5000, -16}}),
        spec::strided(small, {{50, 4000}, {100, 40}}),
        spec::strided(spec::block(100), {{600, 128}}),
        spec::strided(spec::iov({{0, 0, mid, 1, {}}, {0, 2000, small, 1, {}}}), {{54, 2100}}),
        spec::iov(parts),
    };
    for (const spec_ptr& to : all) {
        for (const spec_ptr& from : all) {
            ASSERT_NO_FATAL_FAILURE(check_pair(side(sample_of(*to), guard_side::front, numbers),
                                               side(sample_of(*from), guard_side::back, numbers), numbers, 3));
        }
    }
}

TEST(pack_copy, panels_of_one_shape_meet_whole_and_in_parts)
{
    test::random numbers(run_seed());
    const spec_ptr number = spec::block(8);
    const std::vector<spec_ptr> all{
        spec::strided(number, {{16, 8}, {40, 512}}),
        spec::strided(number, {{16, 8}, {40, -136}}),
        spec::strided(number, {{16, 24}, {40, 400}}),
        spec::strided(number, {{16, -8}, {40, 1000}}),
        spec::strided(number, {{40, 8}, {16, 512}}),
        spec::strided(spec::strided(number, {{16, 8}, {40, 512}}), {{3, 30000}}),
    };
    for (const spec_ptr& to : all) {
        for (const spec_ptr& from : all) {
            ASSERT_NO_FATAL_FAILURE(check_pair(side(sample_of(*to), guard_side::front, numbers),
                                               side(sample_of(*from), guard_side::back, numbers), numbers, 20));
        }
    }
}

} // namespace
