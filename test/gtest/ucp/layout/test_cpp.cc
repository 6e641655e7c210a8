// The C++ header: layouts of views, constant memory, and owners that were moved from.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <array>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace
{

using ucx_layout::datatype;
using ucx_layout::layout;
using ucx_layout::mdspan_like;
using ucx_layout::plan;
using ucx_layout::window;
using ucxl::test::context;
using ucxl::test::contiguous;
using ucxl::test::must;
using ucxl::test::ucp_pair;
using ucxl::test::ucx_test;

// The three mappings of the standard library, with any extents, reduced to what a view shows: members with the names
// and types of std::mdspan.
template <typename T>
struct plain_accessor {
    using element_type     = T;
    using reference        = T&;
    using data_handle_type = T*;
};

struct layout_right {
    static constexpr bool is_always_strided() { return true; }
    template <std::size_t Rank>
    static constexpr std::size_t stride(const std::array<std::size_t, Rank>& extents, std::size_t dimension)
    {
        std::size_t product = 1;
        for (std::size_t i = dimension + 1; i < Rank; ++i) {
            product *= extents[i];
        }
        return product;
    }
};

struct layout_left {
    static constexpr bool is_always_strided() { return true; }
    template <std::size_t Rank>
    static constexpr std::size_t stride(const std::array<std::size_t, Rank>& extents, std::size_t dimension)
    {
        std::size_t product = 1;
        for (std::size_t i = 0; i < dimension; ++i) {
            product *= extents[i];
        }
        return product;
    }
};

template <typename T, std::size_t Rank, typename Mapping, typename Accessor = plain_accessor<T>>
struct view {
    using element_type     = T;
    using value_type       = std::remove_cv_t<T>;
    using reference        = typename Accessor::reference;
    using data_handle_type = typename Accessor::data_handle_type;

    data_handle_type data;
    std::array<std::size_t, Rank> extents;

    static constexpr std::size_t rank() noexcept { return Rank; }
    static constexpr bool is_always_strided() { return Mapping::is_always_strided(); }
    const data_handle_type& data_handle() const { return data; }
    std::size_t extent(std::size_t dimension) const { return extents[dimension]; }
    std::size_t stride(std::size_t dimension) const
        requires(Rank > 0)
    {
        return Mapping::stride(extents, dimension);
    }
};

// layout_stride, with the sign that submdspan of a reversed view would have.
template <typename T, std::size_t Rank>
struct strided_view {
    T* data;
    std::array<int, Rank> extents;
    std::array<int, Rank> strides;
    static constexpr int rank() { return Rank; }
    T* data_handle() const { return data; }
    int extent(std::size_t dimension) const { return extents[dimension]; }
    int stride(std::size_t dimension) const { return strides[dimension]; }
};

class cpp : public ucx_test
{
protected:
    std::vector<int> _numbers = [] {
        std::vector<int> list(60);
        std::iota(list.begin(), list.end(), 0);
        return list;
    }();

    // The numbers that a layout over them shows, in packed order.
    std::vector<int> shown_by(const layout& described, const int* first) const
    {
        std::vector<int> shown(described.packed_length() / sizeof(int));
        const void* const base = first;
        EXPECT_EQ(described.gather(std::span(&base, 1), 0, std::as_writable_bytes(std::span(shown))), UCS_OK);
        return shown;
    }

    template <typename View>
    std::vector<int> shown_by(const View& of_numbers) const
    {
        const auto described = layout::describe(of_numbers);
        EXPECT_TRUE(described);
        return described ? shown_by(*described, of_numbers.data_handle()) : std::vector<int>{};
    }
};

TEST_F(cpp, a_row_major_view_is_contiguous)
{
    const view<int, 3, layout_right> all{_numbers.data(), {3, 4, 5}};
    EXPECT_EQ(shown_by(all), _numbers);
    EXPECT_EQ(layout::describe(all)->query(UCP_LAYOUT_ATTR_FIELD_BLOCKS)->num_blocks, 1u);
}

TEST_F(cpp, a_column_major_view_is_shown_in_the_order_of_its_indices)
{
    const view<const int, 2, layout_left> all{_numbers.data(), {3, 4}};
    EXPECT_EQ(shown_by(all), (std::vector<int>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
}

TEST_F(cpp, a_part_of_a_view_and_a_reversed_one_have_strides)
{
    EXPECT_EQ(shown_by(strided_view<int, 2>{&_numbers[11], {2, 3}, {10, 2}}),
              (std::vector<int>{11, 13, 15, 21, 23, 25}));
    EXPECT_EQ(shown_by(strided_view<int, 1>{&_numbers[9], {4}, {-2}}), (std::vector<int>{9, 7, 5, 3}));
}

TEST_F(cpp, a_view_of_rank_zero_is_one_element)
{
    static_assert(mdspan_like<view<int, 0, layout_right>>);
    EXPECT_EQ(shown_by(view<int, 0, layout_right>{&_numbers[7], {}}), (std::vector<int>{7}));
}

TEST_F(cpp, an_empty_view_without_memory_is_an_empty_window)
{
    const view<int, 2, layout_right> none{nullptr, {0, 4}};
    const auto shown = window::map(nullptr, none);
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->length(), 0u);
}

// An array of constants: nothing that shows memory requires it to be writable.
TEST_F(cpp, constant_memory_can_be_sent)
{
    static constexpr std::array<int, 8> numbers{0, 1, 2, 3, 4, 5, 6, 7};
    ucp_pair loop({.self = true});
    const strided_view<const int, 1> odd{&numbers[1], {4}, {2}};
    const void* const bases[] = {&numbers[1]};
    const auto column         = must(layout::create_strided(sizeof(int), {{4, 2 * sizeof(int)}}));
    window windows[] = {must(window::map(loop.context(), odd)), must(window::map(loop.context(), column, &numbers[1])),
                        must(window::map(loop.context(), column, bases))};
    for (const window& sent : windows) {
        std::array<int, 4> received{};
        ASSERT_EQ(loop.transfer(contiguous(sent.address(), sent.length()), contiguous(received.data(), 16)), UCS_OK);
        EXPECT_EQ(received, (std::array<int, 4>{1, 3, 5, 7}));
    }
}

TEST_F(cpp, an_array_of_bases_is_not_taken_for_a_base)
{
    const auto pair           = must(layout::parse("iov(0:4@0,1:4@0)"));
    const void* const bases[] = {&_numbers[5], &_numbers[50]};
    void* found[2]            = {};
    const auto shown          = window::map(nullptr, pair, bases);
    ASSERT_TRUE(shown);
    EXPECT_EQ(shown->bases(found), UCS_OK);
    EXPECT_EQ(found[0], &_numbers[5]);
    EXPECT_EQ(found[1], &_numbers[50]);
}

TEST_F(cpp, flags_reach_the_library)
{
    const strided_view<int, 1> all{_numbers.data(), {60}, {1}};
    const auto first  = window::map(nullptr, all, UCP_LAYOUT_MAP_FLAG_EXCLUSIVE);
    const auto second = window::map(nullptr, all, UCP_LAYOUT_MAP_FLAG_EXCLUSIVE);
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->address(), second->address());
}

TEST_F(cpp, what_was_moved_from_is_empty_and_can_be_assigned_to)
{
    auto column      = must(layout::create_strided(4, {{15, 16}}));
    auto shown       = must(window::map(nullptr, column, _numbers.data()));
    auto type        = must(datatype::create(column));
    auto compiled    = must(plan::create(column));
    auto column_copy = std::move(column);
    auto shown_copy  = std::move(shown);
    auto type_copy   = std::move(type);
    auto plan_copy   = std::move(compiled);
    EXPECT_EQ(column.packed_length(), 0u); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(compiled.packed_length(), 0u);
    EXPECT_EQ(shown.get(), nullptr);
    EXPECT_EQ(shown.length(), 0u);
    EXPECT_EQ(type.get(), 0u);
    EXPECT_EQ(column_copy.packed_length(), 60u);
    EXPECT_EQ(plan_copy.packed_length(), 60u);
    EXPECT_EQ(shown_copy.length(), 60u);
    shown = must(window::map(nullptr, column_copy, &_numbers[1]));
    EXPECT_EQ(shown.length(), 60u);
    type   = std::move(type_copy);
    shown  = std::move(shown_copy); // unmaps the window it had
    column = std::move(column_copy);
    EXPECT_EQ(column.packed_length(), 60u);
}

TEST_F(cpp, an_owner_survives_being_moved_to_itself)
{
    auto shown = must(window::map(nullptr, must(layout::create_contig(8)), _numbers.data()));
    auto& same = shown;
    shown      = std::move(same);
    EXPECT_EQ(shown.length(), 8u);
}

TEST_F(cpp, serializes_and_reads_back)
{
    const auto column = must(layout::create_strided(4, {{15, 16}}));
    std::vector<std::byte> bytes(column.query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)->serialized_length);
    ASSERT_EQ(column.serialize(bytes), bytes.size());
    EXPECT_EQ(layout::deserialize(bytes)->packed_length(), 60u);
    logs().expect("ucp_layout_serialize: the buffer has 1 bytes");
    EXPECT_EQ(column.serialize(std::span(bytes).first(1)).error(), UCS_ERR_BUFFER_TOO_SMALL);
}

// Owners cannot be copied, move without failing, and no function throws.
static_assert(!std::is_copy_constructible_v<layout> && std::is_nothrow_move_assignable_v<layout>);
static_assert(!std::is_copy_constructible_v<window> && std::is_nothrow_move_assignable_v<window>);
static_assert(!std::is_copy_constructible_v<plan> && std::is_nothrow_move_assignable_v<plan>);
static_assert(!std::is_copy_constructible_v<datatype> && std::is_nothrow_move_assignable_v<datatype>);
static_assert(noexcept(window::map(nullptr, std::declval<const layout&>(), static_cast<void*>(nullptr))));

// Not views: they have no element to point to, or no strides.
static_assert(!mdspan_like<std::vector<int>>);
static_assert(!mdspan_like<std::span<int>>);

} // namespace
