// Every limit of limits.h from both sides, and the names in the messages.
#include "support/must.h"
#include "ucs/layout/build.h"
#include "ucs/layout/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

using ::testing::HasSubstr;

void expect_limit(const result<layout_ptr>& layout, const char* field, const char* limit)
{
    ASSERT_FALSE(layout.has_value());
    EXPECT_EQ(layout.error().code, errc::exceeds_limit);
    EXPECT_THAT(layout.error().message, HasSubstr(field));
    EXPECT_THAT(layout.error().message, HasSubstr(limit));
}

result<layout_ptr> one_part(std::uint32_t source, std::int64_t offset, std::uint64_t length)
{
    const iov_part part{source, offset, {length, nullptr}};
    return make_iov({&part, 1});
}

TEST(limits, block_length)
{
    EXPECT_TRUE(make_contig(1, {limits::max_length, nullptr}).has_value());
    expect_limit(make_contig(1, {limits::max_length + 1, nullptr}), "length", "max_length");
    expect_limit(make_contig(1, {UINT64_MAX, nullptr}), "length", "max_length");
}

TEST(limits, packed_length)
{
    const dim fits{limits::max_length / 8, 0}, not_fits{limits::max_length / 8 + 1, 0}, overflows{UINT64_MAX / 4, 0};
    EXPECT_TRUE(make_strided({8, nullptr}, {&fits, 1}).has_value());
    expect_limit(make_strided({8, nullptr}, {&not_fits, 1}), "packed length", "max_length");
    expect_limit(make_strided({8, nullptr}, {&overflows, 1}), "packed length", "max_length");
}

TEST(limits, offset_in_both_directions)
{
    EXPECT_TRUE(one_part(0, limits::max_offset - 1, 1).has_value());
    expect_limit(one_part(0, limits::max_offset, 1), "byte", "max_offset");
    expect_limit(one_part(0, limits::max_offset + 1, 1), "parts[0]", "max_offset");
    EXPECT_TRUE(one_part(0, -limits::max_offset, 1).has_value());
    expect_limit(one_part(0, -limits::max_offset - 1, 1), "parts[0]", "max_offset");
    expect_limit(one_part(0, INT64_MIN, 1), "parts[0]", "max_offset");
}

TEST(limits, stride_times_count)
{
    const dim fits{3, limits::max_offset / 2 - 1}, not_fits{3, limits::max_offset / 2}, overflows{3, INT64_MAX};
    EXPECT_TRUE(make_strided({1, nullptr}, {&fits, 1}).has_value());
    expect_limit(make_strided({1, nullptr}, {&not_fits, 1}), "byte", "max_offset");
    expect_limit(make_strided({1, nullptr}, {&overflows, 1}), "dims[0]", "max_offset");
}

TEST(limits, sources)
{
    auto last = one_part(limits::max_sources - 1, 0, 1);
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ((*last)->num_sources(), limits::max_sources);
    expect_limit(one_part(limits::max_sources, 0, 1), "parts[0]", "max_sources");
    const iov_part above{1, 0, {0, *last}};
    expect_limit(make_iov({&above, 1}), "source", "max_sources");
    EXPECT_TRUE(resize(**last, 0, 8, limits::max_sources - 1).has_value());
    expect_limit(resize(**last, 0, 8, limits::max_sources), "source", "max_sources");
    // Sources that have bounds and no bytes.
    const auto empty = must(resize(*must(make_contig(0, {8, nullptr})), 0, 64));
    const iov_part at_last{limits::max_sources - 1, 0, {0, empty}};
    const iov_part behind{1, 0, {0, must(make_iov({&at_last, 1}))}};
    expect_limit(make_iov({&behind, 1}), "source", "max_sources");
}

TEST(limits, dims)
{
    std::vector<dim> dims(limits::max_dims, dim{1, 8});
    EXPECT_TRUE(make_strided({1, nullptr}, dims).has_value());
    dims.push_back({1, 8});
    expect_limit(make_strided({1, nullptr}, dims), "dims", "max_dims");
    const interleaved_part part{0, 0, {1, nullptr}, 1, dims};
    expect_limit(make_interleaved({&part, 1}), "parts[0]", "max_dims");
}

TEST(limits, depth)
{
    std::vector<dim> dims;
    for (std::size_t i = 0; i < limits::max_depth; ++i) {
        dims.insert(dims.begin(), dim{2, std::int64_t{3} << (2 * i)});
    }
    auto deepest = make_strided({1, nullptr}, dims);
    ASSERT_TRUE(deepest.has_value());
    EXPECT_EQ((*deepest)->depth(), limits::max_depth);
    const dim one_more{2, std::int64_t{1} << 40};
    expect_limit(make_strided({0, *deepest}, {&one_more, 1}), "nested loops", "max_depth");
}

TEST(limits, entries)
{
    std::vector<iov_part> parts(limits::max_entries + 1);
    expect_limit(make_iov(parts), "parts", "max_entries");
    parts.pop_back();
    EXPECT_TRUE(make_iov(parts).has_value());
}

// Two sources that wrap after coprime numbers of elements share no period: every cycle needs its own entries.
TEST(limits, cycles_that_do_not_nest_expand_up_to_max_entries)
{
    const auto created = [](std::uint64_t rows) {
        const dim a[] = {{rows * 103, 20000}, {101, 16}}, b[] = {{rows * 101, 30000}, {103, 16}};
        const interleaved_part parts[] = {{0, 0, {8, nullptr}, 1, a}, {1, 0, {8, nullptr}, 1, b}};
        return make_interleaved(parts);
    };
    EXPECT_TRUE(created(1).has_value());
    expect_limit(created(300), "interleaved", "max_entries");
}

TEST(limits, repeat_of_zero_is_refused)
{
    const interleaved_part part{0, 0, {1, nullptr}, 0, {}};
    auto created = make_interleaved({&part, 1});
    ASSERT_FALSE(created.has_value());
    EXPECT_EQ(created.error().code, errc::invalid_param);
    EXPECT_THAT(created.error().message, HasSubstr("parts[0]: repeat"));
}

TEST(limits, bounds_set_by_the_user)
{
    auto block = make_contig(1, {8, nullptr});
    EXPECT_TRUE(resize(**block, -limits::max_offset, 2 * limits::max_offset).has_value());
    expect_limit(resize(**block, -limits::max_offset - 1, 0), "lb", "max_offset");
    expect_limit(resize(**block, 1, limits::max_offset), "lb + extent", "max_offset");
    auto negative = resize(**block, 0, -1);
    ASSERT_FALSE(negative.has_value());
    EXPECT_EQ(negative.error().code, errc::invalid_param);
}

// A layout without bytes is valid, however large the numbers around it.
TEST(limits, empty_parts_have_none)
{
    const dim far{UINT64_MAX, INT64_MAX};
    auto created = make_strided({0, nullptr}, {&far, 1});
    ASSERT_TRUE(created.has_value());
    EXPECT_TRUE((*created)->is_empty());
}

} // namespace
} // namespace ucxl::test
