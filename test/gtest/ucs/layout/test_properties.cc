// What must hold for every layout, over random ones of every kind.
#include "support/property.h"
#include "support/random_spec.h"

#include "ucs/layout/normalise.h"
#include "ucs/layout/text.h"
#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"
#include "ucs/layout/wire_encode.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace ucxl::test
{
namespace
{

constexpr int num_layouts = 8000;

// Calls check(random, spec, layout) for random layouts of varied size.
template <typename Fn>
void for_layouts(int number, overlapping policy, Fn&& check)
{
    const auto draw = [policy](random& from) {
        random_options options;
        options.max_blocks  = 1 + from.below(from.one_in(8) ? 1000 : 64);
        options.max_bytes   = options.max_blocks * (1 + from.below(64));
        options.num_sources = from.one_in(2) ? 1 : 4;
        options.overlapping = policy;
        return random_spec(from, options);
    };
    for_random_layouts(number, draw, [&check](random& from, const spec& described) {
        const auto made = build(described);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        check(from, described, **made);
    });
}

TEST(layout_properties, blocks_are_those_of_the_reference_walker)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec& of, const layout& made) {
        EXPECT_EQ(to_string(segments_of(made)), to_string(segments_of(of)));
        EXPECT_EQ(made.packed_length(), packed_length_of(of));
    });
}

TEST(layout_properties, bounds_are_those_of_the_reference_walker)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec& of, const layout& made) {
        const auto expected = bounds_of(of);
        ASSERT_EQ(made.num_sources(), num_sources_of(of));
        for (std::uint32_t source = 0; source < made.num_sources(); ++source) {
            const auto found = expected.find(source);
            EXPECT_EQ(made.bounds(source), found == expected.end() ? layout_bounds{} : found->second) << source;
        }
        EXPECT_EQ(made.extent(), extent_of(of));
    });
}

// Every loop put through the rules once more, from the blocks up.
TEST(layout_properties, normal_form_is_idempotent)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec&, const layout& made) {
        nest again;
        std::vector<placed> nodes;
        for (const layout_node& node : made.nodes()) {
            if (node.is_block()) {
                nodes.push_back({0, again.block(node.packed_length), 0});
                continue;
            }
            std::vector<nest_item> items;
            for (const layout_entry& entry : made.entries_of(node)) {
                items.push_back({entry.source, nodes[entry.child].node, entry.offset, entry.stride});
            }
            EXPECT_TRUE(is_normal(again, node.count, items));
            auto at = normalise(again, node.count, items);
            ASSERT_TRUE(at.has_value());
            EXPECT_EQ(at->source, 0u);
            EXPECT_EQ(at->offset, 0);
            EXPECT_TRUE(std::ranges::equal(again.items_of(again.at(at->node)), items));
            EXPECT_EQ(again.at(at->node).count, node.count);
            nodes.push_back(*at);
        }
        EXPECT_EQ(again.size(), made.nodes().size());
    });
}

TEST(layout_properties, seek_finds_every_offset)
{
    for_layouts(num_layouts / 4, overlapping::anyhow, [](random& from, const spec& of, const layout& made) {
        const auto expected = segments_of(of);
        for (int i = 0; i < 8; ++i) {
            std::uint64_t skip = from.below(made.packed_length() + 1);
            block_cursor cursor(made);
            cursor.seek(skip);
            std::vector<segment> rest = expected;
            while (!rest.empty() && skip >= rest.front().length) {
                skip -= rest.front().length;
                rest.erase(rest.begin());
            }
            if (!rest.empty()) {
                rest.front().offset += static_cast<std::int64_t>(skip);
                rest.front().length -= skip;
            }
            std::vector<segment> actual;
            while (!cursor.at_end()) {
                const placed_block block = cursor.block(1 + from.below(64));
                actual.push_back({block.source, block.offset, block.length});
                cursor.advance(block.length);
            }
            EXPECT_EQ(to_string(joined(actual)), to_string(rest));
        }
    });
}

TEST(layout_properties, overlap_is_never_wrong)
{
    for (const overlapping policy : {overlapping::anyhow, overlapping::never, overlapping::always}) {
        for_layouts(num_layouts / 4, policy, [](random&, const spec& of, const layout& made) {
            EXPECT_EQ(made.overlap(), has_overlap(of) ? overlap::some : overlap::none);
        });
    }
}

TEST(layout_properties, wire_form_round_trips)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random& from, const spec&, const layout& made) {
        std::vector<std::byte> bytes(wire_length(made));
        auto length = pack_wire(made, bytes);
        ASSERT_TRUE(length.has_value());
        EXPECT_EQ(*length, bytes.size());
        bytes.resize(bytes.size() + from.below(4));
        std::size_t consumed = 0;
        auto back            = unpack_wire(bytes, &consumed);
        ASSERT_TRUE(back.has_value()) << back.error().message;
        EXPECT_EQ(consumed, *length);
        EXPECT_EQ(**back, made);
        EXPECT_EQ((*back)->hash(), made.hash());
    });
}

// Byte by byte, as it was first written: a layout has the same hash in every release.
std::uint64_t hash_of_bytes(std::span<const std::byte> bytes)
{
    std::uint64_t state = 0x9e3779b97f4a7c15u, word = 0;
    const auto mix = [&state](std::uint64_t number) {
        state = (state ^ number) * 0x9fb21c651e98df25u;
        state ^= state >> 32;
    };
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * (i % 8));
        if (i % 8 == 7 || i + 1 == bytes.size()) {
            mix(word);
            word = 0;
        }
    }
    mix(bytes.size());
    return state;
}

TEST(layout_properties, the_empty_layout_has_a_wire_form)
{
    std::array<std::byte, 64> bytes{};
    EXPECT_EQ(pack_wire(layout(), bytes), wire_length(layout()));
}

TEST(layout_properties, hash_is_that_of_the_bytes_of_the_wire_form)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec&, const layout& made) {
        std::vector<std::byte> bytes(wire_length(made));
        ASSERT_TRUE(pack_wire(made, bytes).has_value());
        EXPECT_EQ(made.hash(), hash_of_bytes(bytes));
    });
}

struct collected_bytes {
    std::vector<unsigned> bytes;

    void put(std::uint64_t added, unsigned count)
    {
        for (; count > 0; --count, added >>= 8) {
            bytes.push_back(added & 0xff);
        }
        EXPECT_EQ(added, 0U);
    }
};

TEST(layout_properties, numbers_of_the_wire_form_have_the_fewest_bytes_of_seven_bits)
{
    for (unsigned shift = 0; shift < 64; ++shift) {
        for (const std::uint64_t number :
             {std::uint64_t{1} << shift, (std::uint64_t{1} << shift) - 1, 0xa5a5a5a5a5a5a5a5u >> shift}) {
            std::vector<unsigned> wanted;
            std::uint64_t left = number;
            for (; left >= 0x80; left >>= 7) {
                wanted.push_back((left & 0x7f) | 0x80);
            }
            wanted.push_back(static_cast<unsigned>(left));
            collected_bytes alone, placed;
            wire::put_number(alone, number);
            EXPECT_EQ(alone.bytes, wanted) << number;
            wire::put_place(placed, 5, 6, number);
            wanted.insert(wanted.begin(), {5, 6});
            EXPECT_EQ(placed.bytes, wanted) << number;
        }
    }
}

TEST(layout_properties, text_form_round_trips)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec&, const layout& made) {
        const std::string text = to_text(made, SIZE_MAX);
        auto back              = parse_text(text);
        ASSERT_TRUE(back.has_value()) << text << ": " << back.error().message;
        EXPECT_EQ(to_text(**back, SIZE_MAX), text);
        EXPECT_EQ(**back, made) << text;
    });
}

// A list of the blocks is another way to say the same.
TEST(layout_properties, list_of_the_blocks_describes_the_same_bytes)
{
    for_layouts(num_layouts, overlapping::anyhow, [](random&, const spec& of, const layout&) {
        std::vector<iov_part> parts;
        const auto expected = segments_of(of);
        for (const segment& next : expected) {
            parts.push_back({next.source, next.offset, {next.length, nullptr}});
        }
        auto made = make_iov(parts);
        ASSERT_TRUE(made.has_value());
        EXPECT_EQ(to_string(segments_of(**made)), to_string(expected));
    });
}

// Shrinking ends with one byte at the start of a source other than the first. Which source and which kind of layout is
// left depends on the layout that it began with, and so on the seed.
TEST(layout_properties, a_layout_that_fails_is_made_small)
{
    testing::TestPartResultArray found;
    {
        const testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
        for_layouts(1000, overlapping::anyhow,
                    [](random&, const spec&, const layout& made) { EXPECT_LT(made.num_sources(), 2u); });
    }
    ASSERT_EQ(found.size(), 1);
    EXPECT_THAT(
        found.GetTestPartResult(0).message(),
        testing::ContainsRegex(R"(spec::(iov|interleaved)\(\{\{[123], 0, spec::block\(1\)(, 1, \{\{1, 0\}\})?\}\}\))"));
}

} // namespace
} // namespace ucxl::test
