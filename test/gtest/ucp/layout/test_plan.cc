// The CPU engine by its public functions: memory to memory, without a UCX context, against the blocks of
// ucp_layout_walk.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/random.h"

#include <ucp_layout.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace
{

using ucx_layout::layout;
using ucx_layout::plan;
using ucxl::test::must;
using ucxl::test::ucx_test;

using bytes = std::vector<std::byte>;

bytes numbered(std::size_t length, unsigned seed)
{
    bytes made(length);
    for (std::size_t i = 0; i < length; ++i) {
        made[i] = static_cast<std::byte>((i * 131 + seed * 17) >> 1);
    }
    return made;
}

// What a gather of everything has to give, block by block.
bytes packed_by_walking(const layout& described, std::span<const void* const> bases)
{
    struct walked {
        std::span<const void* const> bases;
        bytes packed;
    } found{bases, {}};
    const auto append = [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) {
        auto& into              = *static_cast<walked*>(arg);
        const auto* const start = static_cast<const std::byte*>(into.bases[source]) + offset;
        into.packed.insert(into.packed.end(), start, start + length);
        return UCS_OK;
    };
    EXPECT_EQ(ucp_layout_walk(described.get(), 0, described.packed_length(), append, &found), UCS_OK);
    return found.packed;
}

class pack_engine : public ucx_test
{
protected:
    // Two sources, blocks of 2 and 6 bytes, 36 packed bytes.
    layout _records = must(layout::parse("interleaved(0:2@0,[3,2],[40,4];1:3*2@1,12,5)"));
    bytes _first    = numbered(256, 1);
    bytes _second   = numbered(256, 2);
    std::array<void*, 2> _bases{_first.data(), _second.data()};
};

TEST_F(pack_engine, gathers_any_range)
{
    const bytes expected = packed_by_walking(_records, _bases);
    const plan compiled  = must(plan::create(_records));
    ASSERT_EQ(compiled.packed_length(), expected.size());
    for (std::size_t offset = 0; offset <= expected.size(); ++offset) {
        for (std::size_t length = 0; length <= expected.size() - offset; ++length) {
            const std::span wanted(expected.data() + offset, length);
            bytes by_plan(length + 1, std::byte{0xee}), by_layout = by_plan;
            ASSERT_EQ(compiled.gather(_bases, offset, std::span(by_plan).first(length)), UCS_OK);
            ASSERT_EQ(_records.gather(_bases, offset, std::span(by_layout).first(length)), UCS_OK);
            ASSERT_TRUE(std::ranges::equal(std::span(by_plan).first(length), wanted)) << offset << ", " << length;
            ASSERT_EQ(by_plan, by_layout);
            ASSERT_EQ(by_plan[length], std::byte{0xee});
        }
    }
}

TEST_F(pack_engine, scatters_any_range_and_leaves_the_rest)
{
    const bytes all     = packed_by_walking(_records, _bases);
    const plan compiled = must(plan::create(_records));
    for (std::size_t offset = 0; offset <= all.size(); ++offset) {
        for (std::size_t length = 0; length <= all.size() - offset; length += 5) {
            const std::span from(all.data() + offset, length);
            bytes first(_first.size()), second(_second.size());
            std::array<void*, 2> bases{first.data(), second.data()};
            ASSERT_EQ((offset % 2 == 0 ? compiled.scatter(bases, offset, from) : _records.scatter(bases, offset, from)),
                      UCS_OK);
            bytes expected(all.size());
            std::ranges::copy(from, expected.begin() + static_cast<std::ptrdiff_t>(offset));
            ASSERT_EQ(packed_by_walking(_records, bases), expected);
            const auto written = std::ranges::count_if(first, [](std::byte b) { return b != std::byte{0}; }) +
                                 std::ranges::count_if(second, [](std::byte b) { return b != std::byte{0}; });
            ASSERT_LE(written, static_cast<std::ptrdiff_t>(length)) << "outside the layout";
        }
    }
}

TEST_F(pack_engine, copies_from_one_layout_to_another)
{
    const plan from   = must(plan::create(_records));
    const layout tile = must(layout::create_strided(3, {{4, 20}, {3, 5}}));
    const plan to     = must(plan::create(tile));
    const bytes all   = packed_by_walking(_records, _bases);
    ASSERT_EQ(to.packed_length(), all.size());
    for (std::size_t to_offset = 0; to_offset < all.size(); to_offset += 7) {
        for (std::size_t from_offset = 0; from_offset < all.size(); from_offset += 5) {
            const std::size_t length = all.size() - std::max(to_offset, from_offset);
            bytes memory(100);
            void* const base = memory.data();
            const std::span bases(&base, 1);
            ASSERT_EQ(from_offset % 2 == 0 ? to.copy(bases, to_offset, from, _bases, from_offset, length)
                                           : tile.copy(bases, to_offset, _records, _bases, from_offset, length),
                      UCS_OK);
            bytes expected(all.size());
            std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(from_offset), length,
                        expected.begin() + static_cast<std::ptrdiff_t>(to_offset));
            const void* const read = base;
            ASSERT_EQ(packed_by_walking(tile, std::span(&read, 1)), expected) << to_offset << ", " << from_offset;
        }
    }
}

TEST_F(pack_engine, a_count_repeats_the_layout_at_its_extent)
{
    const layout pair = must(layout::parse("resized(strided(2,3,5),0,10)"));
    const plan three  = must(plan::create(pair, 3));
    EXPECT_EQ(three.packed_length(), 18u);
    bytes packed(18), expected;
    const void* const base = _first.data();
    ASSERT_EQ(three.gather(std::span(&base, 1), 0, packed), UCS_OK);
    for (std::size_t at : {0, 5, 10, 15, 20, 25}) {
        expected.insert(expected.end(), &_first[at], &_first[at] + 3);
    }
    EXPECT_EQ(packed, expected);
}

TEST_F(pack_engine, tells_what_a_plan_is)
{
    for (const std::size_t count : {0, 1, 4}) {
        const plan made = must(plan::create(_records, count));
        ucp_layout_plan_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_PLAN_ATTR_FIELD_PACKED_LENGTH | UCP_LAYOUT_PLAN_ATTR_FIELD_NUM_SOURCES |
                          UCP_LAYOUT_PLAN_ATTR_FIELD_COUNT;
        ASSERT_EQ(ucp_layout_plan_query(made.get(), &attr), UCS_OK);
        EXPECT_EQ(attr.packed_length, 36 * count);
        EXPECT_EQ(attr.num_sources, 2u);
        EXPECT_EQ(attr.count, count);
        EXPECT_EQ(made.gather(_bases, 0, {}), UCS_OK);
    }
}

TEST_F(pack_engine, a_plan_needs_no_params_and_outlives_the_layout)
{
    ucp_layout_plan_h made = nullptr;
    {
        const layout column = must(layout::create_strided(2, {{8, 16}}));
        ASSERT_EQ(ucp_layout_plan_create(column.get(), nullptr, &made), UCS_OK);
    }
    bytes packed(16);
    void* const base = _first.data();
    EXPECT_EQ(ucp_layout_plan_gather(made, &base, 1, 0, 16, packed.data()), UCS_OK);
    EXPECT_EQ(packed[15], _first[7 * 16 + 1]);
    ucp_layout_plan_destroy(made);
    ucp_layout_plan_destroy(nullptr);
}

TEST_F(pack_engine, too_large_a_count_is_refused)
{
    logs().expect("count 1099511627776");
    EXPECT_EQ(plan::create(_records, std::size_t{1} << 40).error(), UCS_ERR_EXCEEDS_LIMIT);
}

TEST_F(pack_engine, unknown_fields_are_refused)
{
    ucp_layout_plan_params_t params{std::uint64_t{1} << 40, 1};
    ucp_layout_plan_h made = nullptr;
    ucp_layout_plan_attr_t attr{};
    const plan compiled = must(plan::create(_records));
    attr.field_mask     = params.field_mask;
    logs().expect("ucp_layout_plan_create: field_mask");
    logs().expect("ucp_layout_plan_query: field_mask");
    EXPECT_EQ(ucp_layout_plan_create(_records.get(), &params, &made), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(ucp_layout_plan_query(compiled.get(), &attr), UCS_ERR_INVALID_PARAM);
}

TEST_F(pack_engine, checks_its_arguments)
{
    const plan compiled = must(plan::create(_records));
    const plan column   = must(plan::create(must(layout::create_strided(2, {{8, 16}}))));
    bytes memory(64, std::byte{0xee});
    const bytes before = memory;
    void* none         = nullptr;
    const auto gather  = [&](std::size_t num_bases, std::size_t offset, std::size_t length, void* to) {
        return ucp_layout_plan_gather(compiled.get(), _bases.data(), static_cast<std::uint32_t>(num_bases), offset,
                                       length, to);
    };
    logs().expect("ucp_layout_plan_gather: num_bases is 1, the layout has 2 sources");
    EXPECT_EQ(gather(1, 0, 1, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_gather: offset 30 and length 7 exceed the packed length 36");
    EXPECT_EQ(gather(2, 30, 7, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_gather: offset 37");
    EXPECT_EQ(gather(2, 37, SIZE_MAX, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_gather: dst is NULL");
    EXPECT_EQ(gather(2, 0, 1, nullptr), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_gather: bases is NULL");
    EXPECT_EQ(ucp_layout_plan_gather(compiled.get(), nullptr, 2, 0, 1, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_gather: bases[0] is NULL");
    EXPECT_EQ(ucp_layout_plan_gather(column.get(), &none, 1, 0, 1, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_scatter: src is NULL");
    EXPECT_EQ(ucp_layout_plan_scatter(compiled.get(), _bases.data(), 2, 0, 1, nullptr), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_copy: num_dst_bases is 2");
    EXPECT_EQ(ucp_layout_plan_copy(column.get(), _bases.data(), 2, 0, compiled.get(), _bases.data(), 2, 0, 1),
              UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_plan_copy: src_offset 36");
    void* const to = memory.data();
    EXPECT_EQ(ucp_layout_plan_copy(column.get(), &to, 1, 0, compiled.get(), _bases.data(), 2, 36, 1),
              UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_gather: num_bases is 0");
    EXPECT_EQ(ucp_layout_gather(_records.get(), nullptr, 0, 0, 1, memory.data()), UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_copy: src_offset 36");
    EXPECT_EQ(ucp_layout_copy(_records.get(), _bases.data(), 2, 0, _records.get(), _bases.data(), 2, 36, 1),
              UCS_ERR_INVALID_PARAM);
    logs().expect("ucp_layout_scatter: offset 0 and length 37");
    EXPECT_EQ(ucp_layout_scatter(_records.get(), _bases.data(), 2, 0, 37, memory.data()), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(memory, before);
    EXPECT_EQ(gather(2, 36, 0, nullptr), UCS_OK) << "no bytes need no memory";
}

// The first call of several threads at once compiles the plan of the layout.
TEST_F(pack_engine, threads_share_a_layout_and_its_plan)
{
    const bytes expected = packed_by_walking(_records, _bases);
    for (int round = 0; round < 20; ++round) {
        const layout fresh = must(layout::parse("interleaved(0:2@0,[3,2],[40,4];1:3*2@1,12,5)"));
        std::atomic<int> right{0};
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                bytes packed(expected.size());
                right += fresh.gather(_bases, 0, packed) == UCS_OK && packed == expected;
            });
        }
        threads.clear();
        ASSERT_EQ(right, 4);
    }
}

} // namespace
