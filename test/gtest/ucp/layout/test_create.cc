// ucp_layout_create, _parse, _query, _walk, _serialize, _deserialize, _print through the C API.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/printed_text.h"
#include "support/wait_until.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <ucp_layout.hpp>

namespace
{

using testing::HasSubstr;
using ucx_layout::layout;
using ucxl::test::must;
using ucxl::test::printed_text;
using ucxl::test::ucx_test;

class create : public ucx_test
{
};

class destroy : public ucx_test
{
};

class parse : public ucx_test
{
};

class print : public ucx_test
{
};

class query : public ucx_test
{
};

class walk : public ucx_test
{
};

class serialized : public ucx_test
{
};

struct block {
    std::uint32_t source;
    std::ptrdiff_t offset;
    std::size_t length;
    bool operator==(const block&) const = default;
};

void PrintTo(const block& shown, std::ostream* to)
{
    *to << shown.source << ":" << shown.length << "@" << shown.offset;
}

std::vector<block> blocks_of(const layout& layout, std::size_t offset = 0, std::size_t length = SIZE_MAX)
{
    std::vector<block> found;
    const auto append = [](void* arg, std::uint32_t source, std::ptrdiff_t at, std::size_t bytes) {
        static_cast<std::vector<block>*>(arg)->push_back({source, at, bytes});
        return UCS_OK;
    };
    const std::size_t all = layout.packed_length();
    EXPECT_EQ(ucp_layout_walk(layout.get(), offset, std::min(length, all - offset), append, &found), UCS_OK);
    return found;
}

TEST_F(create, contig_elements_follow_each_other_at_the_extent)
{
    auto item = layout::create_strided(4, {{2, 8}}); // 4 bytes, gap of 4, 4 bytes: extent 12
    auto row  = layout::create_contig(2, item->as_element());
    EXPECT_EQ(blocks_of(*row), (std::vector<block>{{0, 0, 4}, {0, 8, 4}, {0, 12, 4}, {0, 20, 4}}));
}

TEST_F(create, contig_count_defaults_to_one)
{
    ucp_layout_params_t params{};
    params.field_mask     = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT;
    params.kind           = UCP_LAYOUT_KIND_CONTIG;
    params.element.length = 5;
    params.count          = 77; // not in the mask
    EXPECT_EQ(layout::create(params)->packed_length(), 5u);
}

TEST_F(create, strided_walks_the_last_dimension_fastest)
{
    auto tile = layout::create_strided(2, {{2, 100}, {3, 10}});
    EXPECT_EQ(blocks_of(*tile),
              (std::vector<block>{{0, 0, 2}, {0, 10, 2}, {0, 20, 2}, {0, 100, 2}, {0, 110, 2}, {0, 120, 2}}));
}

TEST_F(create, iov_keeps_the_order_of_its_parts)
{
    const ucp_layout_iov_t parts[] = {{1, 40, {8, nullptr}}, {0, 0, {4, nullptr}}, {0, 100, {2, nullptr}}};
    auto list                      = layout::concatenate(parts);
    EXPECT_EQ(blocks_of(*list), (std::vector<block>{{1, 40, 8}, {0, 0, 4}, {0, 100, 2}}));
    EXPECT_EQ(list->query(UCP_LAYOUT_ATTR_FIELD_NUM_SOURCES)->num_sources, 2u);
}

// The vertices of the vertex example: X Y Z of one array, R G B of another, S T of a third, six cycles.
TEST_F(create, interleaved_takes_three_three_and_two_per_cycle)
{
    const ucp_layout_dim_t six[]             = {{18, 4}};
    const ucp_layout_dim_t st[]              = {{12, 4}};
    const ucp_layout_interleaved_t sources[] = {
        {0, 0, {4, nullptr}, 3, six, 1}, {1, 0, {4, nullptr}, 3, six, 1}, {2, 0, {4, nullptr}, 2, st, 1}};
    auto vertices = layout::interleave(sources);
    ASSERT_TRUE(vertices);
    EXPECT_EQ(vertices->packed_length(), 6u * 32);
    std::vector<block> expected;
    for (int cycle = 0; cycle < 6; ++cycle) {
        expected.push_back({0, cycle * 12, 12});
        expected.push_back({1, cycle * 12, 12});
        expected.push_back({2, cycle * 8, 8});
    }
    EXPECT_EQ(blocks_of(*vertices), expected);
}

TEST_F(create, extent_can_be_set)
{
    ucp_layout_params_t params{};
    params.field_mask = UCP_LAYOUT_PARAM_FIELD_KIND | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_EXTENT;
    params.kind       = UCP_LAYOUT_KIND_CONTIG;
    params.element.length = 8;
    params.lb             = -4;
    params.extent         = 100;
    auto created          = layout::create(params);
    const auto bounds     = *created->query_bounds();
    EXPECT_EQ(bounds.lb, -4);
    EXPECT_EQ(bounds.ub, 96);
    EXPECT_EQ(bounds.true_lb, 0);
    EXPECT_EQ(bounds.true_ub, 8);
    EXPECT_EQ(created->query(UCP_LAYOUT_ATTR_FIELD_EXTENT)->extent, 100);
}

TEST_F(create, a_nested_layout_may_be_destroyed_at_once)
{
    auto outer = [] {
        auto inner = layout::create_strided(8, {{4, 16}});
        return layout::create_strided(inner->as_element(), std::vector<layout::dim>{{3, 1000}});
    }();
    EXPECT_EQ(outer->packed_length(), 96u);
    EXPECT_EQ(blocks_of(*outer).size(), 12u);
}

TEST_F(create, a_list_of_buffers_is_shown_in_its_order)
{
    std::array<char, 64> memory{};
    const ucp_dt_iov_t list[] = {{&memory[32], 8}, {nullptr, 0}, {&memory[4], 2}, {&memory[6], 3}, {&memory[63], 0}};
    const auto from_first     = must(layout::from_iov(list, list[0].buffer));
    EXPECT_EQ(blocks_of(from_first), (std::vector<block>{{0, 0, 8}, {0, -28, 5}})) << "neighbours are one block";
    const auto from_start = must(layout::from_iov(list, memory.data()));
    EXPECT_EQ(blocks_of(from_start), (std::vector<block>{{0, 32, 8}, {0, 4, 5}}));
    ucp_layout_h empty = nullptr;
    ASSERT_EQ(ucp_layout_from_iov(nullptr, 0, nullptr, &empty), UCS_OK);
    EXPECT_EQ(layout(empty).packed_length(), 0u);
}

// The distances count, so a list of the same shape elsewhere has the same layout, and its window the list's bytes.
TEST_F(create, a_list_of_buffers_serves_others_of_its_shape)
{
    std::array<char, 128> memory{};
    const auto list_at = [&](std::size_t at) {
        return std::array<ucp_dt_iov_t, 2>{{{&memory[at], 4}, {&memory[at + 20], 7}}};
    };
    const auto here  = must(layout::from_iov(list_at(0), &memory[0]));
    const auto there = must(layout::from_iov(list_at(70), &memory[70]));
    EXPECT_EQ(here.get(), there.get()) << "equal layouts have one handle";
}

TEST_F(create, a_list_of_buffers_that_is_wrong_is_refused)
{
    char byte          = 0;
    const auto refused = [&](const ucp_dt_iov_t* list, std::size_t length, const void* base) {
        ucp_layout_h made = nullptr;
        const auto status = ucp_layout_from_iov(list, length, base, &made);
        EXPECT_EQ(made, nullptr) << "outputs are written on success only";
        return status;
    };
    const ucp_dt_iov_t null[]   = {{&byte, 1}, {nullptr, 3}};
    const ucp_dt_iov_t far[]    = {{reinterpret_cast<void*>((std::uintptr_t{1} << 46) + 4096), 1}};
    const ucp_dt_iov_t longer[] = {{nullptr, 0}, {&byte, SIZE_MAX}};
    logs().expect("ucp_layout_from_iov: iov is NULL");
    logs().expect("ucp_layout_from_iov: iov[1].buffer is NULL, and iov[1].length is 3");
    logs().expect("ucp_layout_from_iov: iov has 4194305 elements, the limit is 4194304");
    logs().expect("ucp_layout_from_iov: iov: parts[0]: part: offset 70368744181760 exceeds");
    logs().expect("ucp_layout_from_iov: iov: parts[1]: item: length 18446744073709551615 exceeds");
    EXPECT_EQ(refused(nullptr, 2, &byte), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(refused(null, 2, &byte), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(refused(null, UCP_LAYOUT_MAX_ENTRIES + 1, &byte), UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_EQ(refused(far, 1, nullptr), UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_EQ(refused(longer, 2, &byte), UCS_ERR_EXCEEDS_LIMIT);
}

struct bad_create {
    const char* name;
    std::uint64_t field_mask;
    void (*change)(ucp_layout_params_t&);
    ucs_status_t status;
    const char* message;
};

void PrintTo(const bad_create& shown, std::ostream* to)
{
    *to << shown.name;
}

class create_refuses : public ucx_test, public testing::WithParamInterface<bad_create>
{
};

TEST_P(create_refuses, with_a_message_that_names_the_field)
{
    const auto& bad = GetParam();
    ucp_layout_params_t params{};
    params.field_mask = bad.field_mask;
    bad.change(params);
    logs().expect(bad.message);
    ucp_layout_h layout = nullptr;
    EXPECT_EQ(ucp_layout_create(&params, &layout), bad.status);
    EXPECT_EQ(layout, nullptr) << "outputs are written on success only";
}

constexpr auto with_kind = UCP_LAYOUT_PARAM_FIELD_KIND;
const ucp_layout_dim_t a_dim{1, 1};
const ucp_layout_interleaved_t no_repeat{0, 0, {4, nullptr}, 0, &a_dim, 1};

INSTANTIATE_TEST_SUITE_P(
    fields, create_refuses,
    testing::Values(bad_create{"no_kind", 0, [](auto&) {}, UCS_ERR_INVALID_PARAM, "kind"},
                    bad_create{"unknown_kind", with_kind, [](auto& p) { p.kind = static_cast<ucp_layout_kind_t>(99); },
                               UCS_ERR_INVALID_PARAM, "kind 99"},
                    bad_create{"unknown_bit", std::uint64_t{1} << 63 | with_kind, [](auto&) {}, UCS_ERR_INVALID_PARAM,
                               "field_mask"},
                    bad_create{"contig_without_element", with_kind, [](auto&) {}, UCS_ERR_INVALID_PARAM, "element"},
                    bad_create{"strided_without_dims", with_kind | UCP_LAYOUT_PARAM_FIELD_ELEMENT,
                               [](auto& p) { p.kind = UCP_LAYOUT_KIND_STRIDED; }, UCS_ERR_INVALID_PARAM, "dims"},
                    bad_create{"dims_null", with_kind | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS,
                               [](auto& p) {
                                   p.kind     = UCP_LAYOUT_KIND_STRIDED;
                                   p.num_dims = 1;
                               },
                               UCS_ERR_INVALID_PARAM, "dims is NULL"},
                    bad_create{"dims_too_many",
                               with_kind | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_DIMS,
                               [](auto& p) {
                                   p.kind     = UCP_LAYOUT_KIND_STRIDED;
                                   p.num_dims = 17;
                                   p.dims     = &a_dim;
                               },
                               UCS_ERR_EXCEEDS_LIMIT, "limit is 16"},
                    bad_create{"iov_missing", with_kind, [](auto& p) { p.kind = UCP_LAYOUT_KIND_IOV; },
                               UCS_ERR_INVALID_PARAM, "iov"},
                    bad_create{"iov_too_long", with_kind | UCP_LAYOUT_PARAM_FIELD_IOV,
                               [](auto& p) {
                                   p.kind    = UCP_LAYOUT_KIND_IOV;
                                   p.num_iov = SIZE_MAX;
                               },
                               UCS_ERR_EXCEEDS_LIMIT, "iov"},
                    bad_create{"interleaved_missing", with_kind, [](auto& p) { p.kind = UCP_LAYOUT_KIND_INTERLEAVED; },
                               UCS_ERR_INVALID_PARAM, "interleaved"},
                    bad_create{"repeat_zero", with_kind | UCP_LAYOUT_PARAM_FIELD_INTERLEAVED,
                               [](auto& p) {
                                   p.kind            = UCP_LAYOUT_KIND_INTERLEAVED;
                                   p.num_interleaved = 1;
                                   p.interleaved     = &no_repeat;
                               },
                               UCS_ERR_INVALID_PARAM, "repeat"},
                    bad_create{"length_too_large", with_kind | UCP_LAYOUT_PARAM_FIELD_ELEMENT,
                               [](auto& p) { p.element.length = SIZE_MAX; }, UCS_ERR_EXCEEDS_LIMIT, "length"},
                    bad_create{"extent_too_large",
                               with_kind | UCP_LAYOUT_PARAM_FIELD_ELEMENT | UCP_LAYOUT_PARAM_FIELD_EXTENT,
                               [](auto& p) { p.extent = SIZE_MAX; }, UCS_ERR_EXCEEDS_LIMIT, "extent"}),
    [](const auto& test) { return test.param.name; });

TEST_F(parse, makes_what_create_makes)
{
    auto parsed  = layout::parse("strided(4096,64,128)");
    auto created = layout::create_strided(64, {{4096, 128}});
    EXPECT_EQ(parsed->query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash, created->query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash);
}

// The inline functions of the C header.
TEST_F(parse, makes_what_the_constructor_of_each_kind_makes)
{
    const ucp_layout_dim_t dims[]            = {{3, 100}, {4, 10}};
    const ucp_layout_iov_t parts[]           = {{1, 40, {8, nullptr}}, {0, -4, {2, nullptr}}};
    const ucp_layout_interleaved_t sources[] = {{0, 8, {4, nullptr}, 3, &dims[1], 1}, {1, 0, {2, nullptr}, 1, dims, 2}};
    const auto expect                        = [](const char* text, auto create) {
        ucp_layout_h created = nullptr;
        ASSERT_EQ(create(&created), UCS_OK);
        const layout owned(created);
        const auto parsed = layout::parse(text);
        ASSERT_TRUE(parsed);
        EXPECT_EQ(owned.query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash, parsed->query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash)
            << text;
        EXPECT_EQ(blocks_of(owned), blocks_of(*parsed)) << text;
    };
    expect("12", [](ucp_layout_h* layout) { return ucp_layout_contig(12, layout); });
    expect("strided(5,8,-16)", [](ucp_layout_h* layout) { return ucp_layout_strided(8, 5, -16, layout); });
    expect("strided([3,4]x2,[100,10])",
           [&](ucp_layout_h* layout) { return ucp_layout_strided_nd(2, dims, 2, layout); });
    expect("2", [](ucp_layout_h* layout) { return ucp_layout_strided_nd(2, nullptr, 0, layout); });
    expect("iov(1:8@40,2@-4)", [&](ucp_layout_h* layout) { return ucp_layout_concatenate(parts, 2, layout); });
    expect("interleaved(0:3*4@8,4,10;1:2@0,[3,4],[100,10])",
           [&](ucp_layout_h* layout) { return ucp_layout_interleave(sources, 2, layout); });
}

TEST_F(parse, names_the_column_of_a_mistake)
{
    logs().expect("column");
    ucp_layout_h layout = nullptr;
    EXPECT_EQ(ucp_layout_parse("strided(4096,64", &layout), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(layout, nullptr);
}

TEST_F(query, refuses_a_source_that_is_not_there)
{
    auto created = layout::create_contig(8);
    logs().expect("source is 1, the layout has 1 sources");
    EXPECT_EQ(created->query_bounds(1).error(), UCS_ERR_INVALID_PARAM);
}

TEST_F(query, counts_blocks_after_merging_neighbours)
{
    const auto attr = must(must(layout::create_strided(8, {{10, 20}, {3, 8}})).query(UCP_LAYOUT_ATTR_FIELD_BLOCKS));
    EXPECT_EQ(attr.num_blocks, 10u);
    EXPECT_EQ(attr.min_block_length, 24u);
    EXPECT_EQ(attr.max_block_length, 24u);
}

TEST_F(query, tells_overlap)
{
    const auto overlap_of = [](std::ptrdiff_t stride) {
        return layout::create_strided(8, {{4, stride}})->query(UCP_LAYOUT_ATTR_FIELD_OVERLAP)->overlap;
    };
    EXPECT_EQ(overlap_of(9), UCP_LAYOUT_OVERLAP_NONE);
    EXPECT_EQ(overlap_of(7), UCP_LAYOUT_OVERLAP_SOME);
    EXPECT_EQ(overlap_of(-8), UCP_LAYOUT_OVERLAP_NONE);
}

TEST_F(walk, starts_and_ends_inside_blocks)
{
    auto created = layout::create_strided(8, {{4, 16}});
    EXPECT_EQ(blocks_of(*created, 5, 14), (std::vector<block>{{0, 5, 3}, {0, 16, 8}, {0, 32, 3}}));
}

TEST_F(walk, refuses_a_range_beyond_the_packed_length)
{
    auto created     = layout::create_contig(8);
    const auto never = [](void*, std::uint32_t, std::ptrdiff_t, std::size_t) { return UCS_ERR_LAST; };
    logs().expect("packed length");
    EXPECT_EQ(ucp_layout_walk(created->get(), 4, 5, never, nullptr), UCS_ERR_INVALID_PARAM);
}

TEST_F(walk, ends_with_the_status_of_the_callback)
{
    auto created   = layout::create_strided(8, {{4, 16}});
    int calls      = 0;
    const auto end = [](void* arg, std::uint32_t, std::ptrdiff_t, std::size_t) {
        return ++*static_cast<int*>(arg) == 2 ? UCS_ERR_CANCELED : UCS_OK;
    };
    EXPECT_EQ(ucp_layout_walk(created->get(), 0, 32, end, &calls), UCS_ERR_CANCELED);
    EXPECT_EQ(calls, 2);
}

TEST_F(serialized, round_trip_gives_an_equal_layout)
{
    auto created = layout::parse("interleaved(0:3*4@0,18,4;1:3*4@0,18,4;2:2*4@0,12,4)");
    ASSERT_TRUE(created);
    const auto attr = *created->query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH | UCP_LAYOUT_ATTR_FIELD_HASH);
    std::vector<std::byte> bytes(attr.serialized_length + 10);
    std::size_t length = bytes.size();
    ASSERT_EQ(ucp_layout_serialize(created->get(), bytes.data(), &length), UCS_OK);
    EXPECT_EQ(length, attr.serialized_length);
    auto back = layout::deserialize(std::span(bytes).first(length));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->query(UCP_LAYOUT_ATTR_FIELD_HASH)->hash, attr.hash);
    EXPECT_EQ(blocks_of(*back), blocks_of(*created));
}

TEST_F(serialized, a_small_buffer_is_left_alone)
{
    auto created = layout::create_contig(8);
    std::vector<std::byte> bytes(created->query(UCP_LAYOUT_ATTR_FIELD_SERIALIZED_LENGTH)->serialized_length - 1,
                                 std::byte{0x5a});
    const auto before  = bytes;
    std::size_t length = bytes.size();
    logs().expect("needs");
    EXPECT_EQ(ucp_layout_serialize(created->get(), bytes.data(), &length), UCS_ERR_BUFFER_TOO_SMALL);
    EXPECT_EQ(bytes, before);
    EXPECT_EQ(length, bytes.size());
}

TEST_F(serialized, garbage_is_refused)
{
    const std::vector<std::byte> garbage(64, std::byte{0xff});
    logs().expect("ucp_layout_deserialize");
    // Of errors that peers can cause only some are logged each second, and other tests cause many.
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        EXPECT_FALSE(layout::deserialize(garbage));
        return logs().count("ucp_layout_deserialize") > 0;
    }));
}

TEST_F(print, shows_text_normal_form_and_plan)
{
    auto created            = layout::create_strided(64, {{4096, 128}});
    const std::string shown = printed_text([&](FILE* stream) {
        EXPECT_EQ(ucp_layout_print(created->get(), stream,
                                   UCP_LAYOUT_PRINT_TEXT | UCP_LAYOUT_PRINT_NORMAL | UCP_LAYOUT_PRINT_PLAN),
                  UCS_OK);
    });
    EXPECT_THAT(shown, HasSubstr("strided(4096,64,128)"));
    EXPECT_THAT(shown, HasSubstr("4096"));
}

TEST_F(destroy, null_is_allowed)
{
    ucp_layout_destroy(nullptr);
}

} // namespace
