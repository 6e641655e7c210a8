// What a wire form may say. Each layout has one wire form, so whoever says the same otherwise is refused.
#include "ucs/layout/build.h"
#include "ucs/layout/wire.h"

#include "support/must.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ucxl::test
{

namespace
{

using bytes = std::vector<std::uint8_t>;

// 8 bytes at 0 and 4 at 16: a loop that runs once, over two blocks.
const bytes two_blocks = {'L', 'N', 1, 0, // version, flags
                          3,   2,         // nodes, entries
                          0,   0,         // source and offset of the root
                          16,             // a block of 8
                          8,              // a block of 4
                          3,   2,         // a loop that runs once, its entries
                          0,   1,   0,    // source, nodes back, offset
                          0,   0,   32};

result<layout_ptr> read(const bytes& wire_form)
{
    return unpack_wire(std::as_bytes(std::span(wire_form)));
}

bytes with_bounds(std::vector<std::uint8_t> bounds)
{
    bytes changed = two_blocks;
    changed[3]    = 1;
    changed.insert(changed.end(), bounds.begin(), bounds.end());
    return changed;
}

struct wire_form_case {
    std::string name;
    bytes wire_form;

    friend void PrintTo(const wire_form_case& shown, std::ostream* to) { *to << shown.name; }
};

class refused_wire_form : public testing::TestWithParam<wire_form_case>
{
};

TEST_P(refused_wire_form, is_malformed)
{
    const auto read_form = read(GetParam().wire_form);
    ASSERT_FALSE(read_form.has_value());
    EXPECT_EQ(read_form.error().code, errc::malformed) << read_form.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    all, refused_wire_form,
    testing::Values(
        wire_form_case{"nodes_in_another_order", {'L', 'N', 1, 0, 3, 2, 0, 0, 8, 16, 3, 2, 0, 0, 0, 0, 1, 32}},
        wire_form_case{"a_node_that_nothing_uses", {'L', 'N', 1, 0, 4, 2, 0, 0, 4, 16, 8, 3, 2, 0, 1, 0, 0, 0, 32}},
        wire_form_case{"more_entries_in_the_header", {'L', 'N', 1, 0, 3, 3, 0, 0, 16, 8, 3, 2, 0, 1, 0, 0, 0, 32}},
        wire_form_case{"fewer_entries_in_the_header", {'L', 'N', 1, 0, 3, 1, 0, 0, 16, 8, 3, 2, 0, 1, 0, 0, 0, 32}},
        wire_form_case{"a_block_twice", {'L', 'N', 1, 0, 3, 2, 0, 0, 16, 16, 3, 2, 0, 1, 0, 0, 0, 32}},
        wire_form_case{"a_loop_of_one_block", {'L', 'N', 1, 0, 2, 1, 0, 0, 16, 3, 1, 0, 0, 0}},
        wire_form_case{"blocks_that_touch", {'L', 'N', 1, 0, 3, 2, 0, 0, 16, 8, 3, 2, 0, 1, 0, 0, 0, 16}},
        wire_form_case{"a_number_in_more_bytes_than_it_needs",
                       {'L', 'N', 1, 0, 3, 2, 0, 0, 0x90, 0, 8, 3, 2, 0, 1, 0, 0, 0, 32}},
        wire_form_case{"an_offset_in_more_bytes_than_it_needs",
                       {'L', 'N', 1, 0, 3, 2, 0, 0, 16, 8, 3, 2, 0, 1, 0x80, 0, 0, 0, 32}},
        wire_form_case{"a_last_offset_in_more_bytes_than_it_needs",
                       {'L', 'N', 1, 0, 3, 2, 0, 0, 16, 8, 3, 2, 0, 1, 0, 0, 0, 0xa0, 0}},
        wire_form_case{"a_flag_of_bounds_without_bounds", with_bounds({0})},
        wire_form_case{"bounds_that_are_those_of_the_bytes", with_bounds({1, 0, 0, 20})},
        wire_form_case{"empty_bounds_of_a_source_without_bytes", with_bounds({1, 3, 0, 0})},
        wire_form_case{"empty_bounds_of_the_last_source", with_bounds({1, 63, 0, 0})},
        wire_form_case{"an_unknown_flag", {'L', 'N', 1, 2, 3, 2, 0, 0, 16, 8, 3, 2, 0, 1, 0, 0, 0, 32}}),
    [](const auto& tested) { return tested.param.name; });

TEST(wire_form, of_two_blocks_is_read)
{
    const layout_ptr read_form = must(read(two_blocks));
    const layout_ptr same      = must(make_iov(std::vector<iov_part>{{0, 0, {.length = 8}}, {0, 16, {.length = 4}}}));
    EXPECT_EQ(*read_form, *same);
    EXPECT_EQ(read_form->hash(), same->hash());
    EXPECT_EQ(read_form->wire_length(), two_blocks.size());
}

TEST(wire_form, may_set_bounds)
{
    const layout_ptr read_form = must(read(with_bounds({1, 0, 0, 32})));
    EXPECT_EQ(read_form->extent(), 32);
    EXPECT_EQ(read_form->bounds(0).true_ub, 20);
}

// Its lower and its upper bound of 16 are moved to 0, where they say nothing.
TEST(wire_form, of_a_source_without_bytes_and_bounds_is_that_of_none)
{
    const layout_ptr empty = must(resize(*must(make_contig(0, {.length = 8})), 16, 0));
    const layout_ptr made  = must(make_iov(std::vector<iov_part>{{0, 0, {.length = 8}}, {1, -16, {.nested = empty}}}));
    const layout_ptr same  = must(make_iov(std::vector<iov_part>{{0, 0, {.length = 8}}}));
    EXPECT_EQ(made->num_sources(), 1u);
    EXPECT_EQ(*made, *same);
    bytes wire_form(wire_length(*made));
    must(pack_wire(*made, std::as_writable_bytes(std::span(wire_form))));
    EXPECT_EQ(*must(read(wire_form)), *made);
}

TEST(wire_form, that_ends_early_is_malformed)
{
    for (std::size_t length = 0; length < two_blocks.size(); ++length) {
        const auto read_form =
            read(bytes(two_blocks.begin(), two_blocks.begin() + static_cast<std::ptrdiff_t>(length)));
        ASSERT_FALSE(read_form.has_value()) << length;
        EXPECT_EQ(read_form.error().code, errc::malformed) << length;
    }
}

// Short numbers are read as whole words where the input has so many bytes, and byte by byte at its end.
TEST(wire_form, of_offsets_of_any_length_is_read_back)
{
    for (unsigned bits = 0; bits < 46; ++bits) {
        const std::int64_t far = std::int64_t{1} << bits;
        for (const std::int64_t offset : {far, far - 1, -far}) {
            const std::vector<iov_part> parts{
                {0, 0, {.length = 1}}, {0, offset + 2, {.length = 1}}, {0, 9, {.length = 2}}};
            const layout_ptr made = must(make_iov(parts));
            bytes wire_form(wire_length(*made));
            ASSERT_EQ(must(pack_wire(*made, std::as_writable_bytes(std::span(wire_form)))), wire_form.size());
            for (const std::size_t more : {0, 20}) {
                bytes longer = wire_form;
                longer.resize(wire_form.size() + more, 0xff);
                std::size_t consumed       = 0;
                const layout_ptr read_form = must(unpack_wire(std::as_bytes(std::span(longer)), &consumed));
                EXPECT_EQ(*read_form, *made) << offset;
                EXPECT_EQ(read_form->hash(), made->hash()) << offset;
                EXPECT_EQ(consumed, wire_form.size()) << offset;
            }
        }
    }
}

} // namespace

} // namespace ucxl::test
