// The number of contiguous blocks, the shortest and the longest: those of the reference walker after it joined
// neighbours.
#include "support/must.h"
#include "support/property.h"
#include "support/random_spec.h"

#include "ucs/layout/text.h"
#include "ucs/layout/wire.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

struct counted {
    std::uint64_t count = 0;
    std::uint64_t min   = 0;
    std::uint64_t max   = 0;

    bool operator==(const counted&) const = default;
};

void PrintTo(const counted& one, std::ostream* out)
{
    *out << one.count << " blocks of " << one.min << " to " << one.max;
}

counted blocks_of(const layout& made)
{
    return {made.blocks().count, made.blocks().min_length, made.blocks().max_length};
}

counted blocks_of(const spec& described)
{
    counted found;
    for (const segment& one : segments_of(described)) {
        found.min = found.count == 0 ? one.length : std::min(found.min, one.length);
        found.max = std::max(found.max, one.length);
        ++found.count;
    }
    return found;
}

counted blocks_of(const char* text)
{
    const auto made = parse_text(text);
    EXPECT_TRUE(made.has_value()) << text << ": " << (made ? "" : made.error().message);
    return made ? blocks_of(**made) : counted{};
}

// Few small lengths, offsets and strides, so that blocks touch where nothing says so, often once in a loop.
class tight_specs
{
public:
    explicit tight_specs(random& from) : _random(from) {}

    spec_ptr make(unsigned depth)
    {
        if (depth == 0 || _random.one_in(8)) {
            return spec::block(_random.one_in(16) ? 0 : 1 + _random.below(3));
        }
        switch (_random.below(4)) {
        case 0:
            return spec::contig(count(), spec::resized(make(depth - 1), 0, _random.between(0, 12)));
        case 1:
            return spec::strided(make(depth - 1), dims());
        case 2:
            return spec::iov(parts(depth));
        default:
            return spec::interleaved(parts(depth));
        }
    }

private:
    std::uint64_t count() { return _random.one_in(12) ? 0 : 1 + _random.below(5); }

    std::vector<dim> dims()
    {
        std::vector<dim> made(1 + _random.below(2));
        for (dim& one : made) {
            one = {count(), _random.between(-4, 6)};
        }
        return made;
    }

    std::vector<spec_part> parts(unsigned depth)
    {
        std::vector<spec_part> made(1 + _random.below(4));
        for (spec_part& one : made) {
            one.source = _random.one_in(4) ? 1 : 0;
            one.offset = _random.between(-6, 6);
            one.item   = make(depth - 1);
            one.repeat = 1 + _random.below(2);
            one.dims   = dims();
        }
        return made;
    }

    random& _random;
};

TEST(block_counts, last_block_of_an_iteration_joins_the_first_of_the_next)
{
    EXPECT_EQ(blocks_of("contig(3,resized(iov(4@0,4@8),0,12))"), (counted{4, 4, 8}));
}

TEST(block_counts, a_count_that_cannot_be_enumerated)
{
    EXPECT_EQ(blocks_of("contig(4398046511104,resized(iov(4@0,4@8),0,12))"), (counted{4398046511105, 4, 8}));
    EXPECT_EQ(blocks_of("strided([1048576,2097152]x8,[33554448,16])"), (counted{1ull << 41, 8, 8}));
}

// Between the parts at iteration 3 only, and from iteration 7 to iteration 8 only.
TEST(block_counts, blocks_that_touch_once_in_a_loop)
{
    EXPECT_EQ(blocks_of("interleaved(8@0,1000,100;8@-1492,1000,600)"), (counted{1999, 8, 16}));
    EXPECT_EQ(blocks_of("interleaved(8@0,1000,100;8@2192,1000,-200)"), (counted{1999, 8, 16}));
}

TEST(block_counts, other_sources_and_descending_blocks_do_not_join)
{
    EXPECT_EQ(blocks_of("iov(8@0,1:8@8,8@16)"), (counted{3, 8, 8}));
    EXPECT_EQ(blocks_of("strided(5,8,-8)"), (counted{5, 8, 8}));
    EXPECT_EQ(blocks_of("strided(5,8,0)"), (counted{5, 8, 8}));
    EXPECT_EQ(blocks_of("0"), counted{});
}

TEST(block_counts, random_layouts_of_every_kind)
{
    const auto draw = [](random& from) { return random_spec(from, {.num_sources = from.one_in(2) ? 1u : 4u}); };
    for_random_layouts(8000, draw, [](random&, const spec& described) {
        EXPECT_EQ(blocks_of(*must(build(described))), blocks_of(described));
    });
}

TEST(block_counts, random_layouts_whose_blocks_touch_by_accident)
{
    std::uint64_t joined_in_part = 0;
    const auto draw = [](random& from) { return tight_specs(from).make(1 + static_cast<unsigned>(from.below(3))); };
    for_random_layouts(60'000, draw, [&](random&, const spec& described) {
        const auto made = build(described);
        ASSERT_TRUE(made.has_value()) << made.error().message;
        EXPECT_EQ(blocks_of(**made), blocks_of(described));
        joined_in_part += !(*made)->is_empty() && (*made)->blocks().count < (*made)->root_node().num_blocks ? 1 : 0;
    });
    EXPECT_TRUE(HasFailure() || joined_in_part > 2000u) << "of the layouts have neighbours that only counting joins";
}

// Every repetition adds what the second one added.
TEST(block_counts, huge_repetitions_of_random_layouts)
{
    const auto draw = [](random& from) { return tight_specs(from).make(2); };
    for_random_layouts(4000, draw, [](random& from, const spec& described) {
        const auto item    = std::make_shared<spec>(described);
        const counted once = blocks_of(*spec::contig(1, item)), twice = blocks_of(*spec::contig(2, item)),
                      thrice = blocks_of(*spec::contig(3, item));
        if (once.count == 0 || twice.count == 1) {
            return; // nothing, or one block however often
        }
        const std::uint64_t times = (std::uint64_t{1} << 34) + from.below(1 << 20);
        const auto made           = build(*spec::contig(times, item));
        ASSERT_TRUE(made.has_value()) << made.error().message;
        EXPECT_EQ(blocks_of(**made),
                  (counted{once.count + (times - 1) * (twice.count - once.count), thrice.min, thrice.max}));
    });
}

// Each of many neighbours at another iteration: not one pass over the loop for each of them.
TEST(block_counts, many_neighbours_that_touch_once)
{
    random from(1); // fixed, as the sizes: chosen so that the last part never meets the first
    const auto loop_of = [&](std::int64_t parts, std::uint64_t turns) {
        std::vector<spec_part> made;
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t meet = from.between(0, static_cast<std::int64_t>(turns) - 1);
            const spec_part one{.source = 0,
                                .offset = part == 0 ? 0 : made.back().offset + 1 - meet,
                                .item   = spec::block(1),
                                .repeat = 1,
                                .dims   = {{turns, part}}};
            made.push_back(one);
        }
        return spec::interleaved(made);
    };
    const spec_ptr small = loop_of(200, 300);
    EXPECT_EQ(blocks_of(*must(build(*small))), blocks_of(*small));
    EXPECT_EQ(blocks_of(*must(build(*small))).count, 200 * 300 - 199);
    EXPECT_EQ(blocks_of(*must(build(*loop_of(100'000, 1 << 20)))).count, 100'000ull * (1 << 20) - 99'999);
}

} // namespace
} // namespace ucxl::test
