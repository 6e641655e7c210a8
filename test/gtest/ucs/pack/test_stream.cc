// Streaming moves are tried at every size, below the one from which plans use them too.
#include "sample.h"

#include "support/must.h"
#include "support/property.h"

#include "ucs/pack/pack_plan.h"
#include "ucs/pack/stream.h"

#include <gtest/gtest.h>

#include <bit>

namespace
{

using namespace ucxl;
using namespace ucxl::test;

void check_range(const sample& of, const compiled_program& program, std::uint64_t offset, std::uint64_t length,
                 test::random& numbers)
{
    SCOPED_TRACE(testing::Message() << offset << " + " << length << '\n' << describe_program(program));
    const sample_memory memory(of, guard_side::front, numbers);
    const std::vector<std::byte> expected = memory.read(of, offset, length);
    if (can_gather_streaming(program)) {
        const guarded_memory packed(length, guard_side::back);
        gather_streaming(program, memory.bases(), offset, length, packed.data());
        ASSERT_TRUE(std::ranges::equal(packed.bytes(), expected));
    }
    const std::vector<std::byte> data = random_bytes(numbers, length);
    const auto written                = memory.after_write(of, offset, data);
    scatter_streaming(program, memory.bases(), offset, length, data.data());
    ASSERT_EQ(memory.contents(), written);
}

// Plans made while it lives are large from so many bytes on.
struct chosen_limit {
    explicit chosen_limit(std::uint64_t bytes) { set_streaming_limit(bytes); }
    ~chosen_limit() { set_streaming_limit(std::uint64_t{8} << 20); }
    chosen_limit(const chosen_limit&)            = delete;
    chosen_limit& operator=(const chosen_limit&) = delete;
};

TEST(pack_stream, any_range_of_any_layout_matches_the_oracle)
{
    for_random_layouts(400, draw_sample, [](test::random& numbers, const spec& described) {
        const sample of = sample_of(described);
        if (of.bytes.empty()) {
            return;
        }
        const compiled_program program = compile_program(*of.what);
        const std::uint64_t offset     = pick(numbers, 0, of.bytes.size() - 1);
        ASSERT_NO_FATAL_FAILURE(check_range(of, program, offset, pick(numbers, 1, of.bytes.size() - offset), numbers));
        check_range(of, program, 0, of.bytes.size(), numbers);
    });
}

TEST(pack_stream, columns_keep_their_kernels)
{
    const auto program_of = [](const spec_ptr& of) { return compile_program(*sample_of(*of).what); };
    EXPECT_FALSE(can_gather_streaming(program_of(spec::strided(spec::block(8), {{11, 8}, {21, 100}}))));
    EXPECT_FALSE(can_gather_streaming(compiled_program{}));
}

// Long blocks, at lines and across them.
std::vector<spec_ptr> specs_of_long_blocks()
{
    const spec_ptr lines = spec::block(128), mid = spec::block(520), big = spec::block(3000);
    std::vector<spec_part> parts;
    for (int i = 0; i < 30; ++i) {
        const spec_ptr& item = i % 3 == 0 ? big : i % 3 == 1 ? lines : mid;
        parts.push_back(
            {.source = static_cast<std::uint32_t>(i % 2), .offset = (i * 7 % 30) * 3100, .item = item, .dims = {}});
    }
    return {
        spec::block(20000),
        spec::strided(lines, {{200, 256}}),
        spec::strided(lines, {{20, 8192}, {10, 256}}),
        spec::strided(lines, {{200, -192}}),
        spec::strided(lines, {{200, 200}}),
        spec::strided(mid, {{6, 9000}, {7, 1024}}),
        spec::strided(big, {{8, 3008}}),
        spec::strided(spec::block(8), {{500, 24}}),
        spec::iov(parts),
        spec::strided(spec::iov({{0, 0, mid, 1, {}}, {0, 2000, lines, 1, {}}}), {{9, 2200}}),
    };
}

TEST(pack_stream, any_range_of_long_blocks_matches_the_oracle)
{
    test::random numbers(run_seed());
    for (const spec_ptr& of : specs_of_long_blocks()) {
        const sample what              = sample_of(*of);
        const compiled_program program = compile_program(*what.what);
        ASSERT_NO_FATAL_FAILURE(check_range(what, program, 0, what.bytes.size(), numbers));
        for (int i = 0; i < 30; ++i) {
            const std::uint64_t offset = pick(numbers, 0, what.bytes.size() - 1);
            const std::uint64_t length = pick(numbers, 1, what.bytes.size() - offset);
            ASSERT_NO_FATAL_FAILURE(check_range(what, program, offset, length, numbers));
        }
    }
}

TEST(pack_stream, copies_of_large_layouts_match_the_oracle)
{
    const chosen_limit limit(1);
    test::random numbers(run_seed());
    for (const spec_ptr& target : specs_of_long_blocks()) {
        for (const spec_ptr& origin : specs_of_long_blocks()) {
            const sample to = sample_of(*target), from = sample_of(*origin);
            const pack_plan_ptr to_plan   = must(pack_plan::compile(to.what)),
                                from_plan = must(pack_plan::compile(from.what));
            const sample_memory to_memory(to, guard_side::front, numbers), from_memory(from, guard_side::back, numbers);
            const std::uint64_t length      = pick(numbers, 1, std::min(to.bytes.size(), from.bytes.size()));
            const std::uint64_t to_offset   = pick(numbers, 0, to.bytes.size() - length);
            const std::uint64_t from_offset = pick(numbers, 0, from.bytes.size() - length);
            const auto written = to_memory.after_write(to, to_offset, from_memory.read(from, from_offset, length));
            pack_plan::copy(*to_plan, to_memory.bases(), to_offset, *from_plan, from_memory.bases(), from_offset,
                            length);
            ASSERT_EQ(to_memory.contents(), written) << to_plan->describe() << "\n" << from_plan->describe();
        }
    }
}

TEST(pack_stream, copies_between_memories_of_one_large_layout_match_the_oracle)
{
    const chosen_limit limit(1);
    test::random numbers(run_seed());
    std::vector<spec_ptr> all = specs_of_long_blocks();
    const spec_ptr twelve     = spec::strided(spec::block(12), {{500, 24}});
    all.push_back(spec::iov({{0, 4, twelve, 1, {}}, {0, 16, twelve, 1, {}}})); // two arrays without a gap in memory
    for (const spec_ptr& described : all) {
        const sample what        = sample_of(*described);
        const pack_plan_ptr plan = must(pack_plan::compile(what.what));
        for (const bool is_whole : {true, false, false, false}) {
            const sample_memory to(what, guard_side::front, numbers), from(what, guard_side::back, numbers);
            const std::uint64_t length = is_whole ? what.bytes.size() : pick(numbers, 1, what.bytes.size());
            const std::uint64_t offset = pick(numbers, 0, what.bytes.size() - length);
            const auto written         = to.after_write(what, offset, from.read(what, offset, length));
            pack_plan::copy(*plan, to.bases(), offset, *plan, from.bases(), offset, length);
            ASSERT_EQ(to.contents(), written) << plan->describe() << " at " << offset << ", " << length << " bytes";
        }
    }
}

TEST(pack_stream, what_is_measured_is_a_limit)
{
    const std::uint64_t limit = measure_streaming_limit();
    const bool is_measured = std::has_single_bit(limit) && limit >= min_measured_limit && limit <= max_measured_limit;
    EXPECT_TRUE(is_measured || limit == no_streaming) << limit;
}

TEST(pack_stream, the_limit_that_is_set_decides)
{
    {
        const chosen_limit limit(4096);
        EXPECT_EQ(streaming_limit(), 4096u);
        EXPECT_EQ(least_streaming_limit(), 4096u);
        note_large_move(std::uint64_t{1} << 40); // nothing is measured
        EXPECT_EQ(streaming_limit(), 4096u);
    }
    {
        const chosen_limit limit(0);
        EXPECT_EQ(streaming_limit(), 1u);
    }
    const chosen_limit limit(no_streaming);
    EXPECT_EQ(streaming_limit(), no_streaming);
}

TEST(pack_stream, plans_say_what_goes_past_the_caches)
{
    const auto text_of = [](const spec_ptr& of) { return must(pack_plan::compile(sample_of(*of).what))->describe(); };
    const spec_ptr shorts = spec::strided(spec::block(8), {{1024, 24}}),
                   longs  = spec::strided(spec::block(512), {{16, 600}});
    {
        const chosen_limit limit(8192);
        EXPECT_NE(text_of(shorts).find("\ngathers of 8192 bytes and more go past"), std::string::npos)
            << text_of(shorts);
        EXPECT_EQ(text_of(shorts).find("scatters"), std::string::npos) << text_of(shorts);
        EXPECT_NE(text_of(longs).find("\ngathers of 8192 bytes"), std::string::npos) << text_of(longs);
        EXPECT_NE(text_of(longs).find("\nscatters of 4096 bytes"), std::string::npos) << text_of(longs);
    }
    const chosen_limit limit(8193);
    EXPECT_EQ(text_of(longs).find("past the caches"), std::string::npos) << text_of(longs);
}

TEST(pack_stream, plans_above_the_limit_move_the_same_bytes)
{
    const chosen_limit limit(65536);
    constexpr std::size_t block = 512, stride = 584, count = 200;
    const auto of = build(*spec::strided(spec::block(block), {{count, stride}}));
    ASSERT_TRUE(of);
    const pack_plan_ptr plan = must(pack_plan::compile(*of));
    test::random numbers(run_seed());
    std::vector<std::byte> memory = random_bytes(numbers, count * stride), packed(count * block), expected;
    for (std::size_t i = 0; i < count; ++i) {
        expected.insert(expected.end(), &memory[i * stride], &memory[i * stride] + block);
    }
    std::byte* const bases[] = {memory.data()};
    plan->gather(bases, 0, packed.size(), packed.data());
    EXPECT_TRUE(packed == expected);

    const std::vector<std::byte> before = memory;
    std::ranges::reverse(packed);
    plan->scatter(bases, 0, packed.size(), packed.data());
    for (std::size_t i = 0; i < memory.size(); ++i) {
        const std::size_t at = i % stride;
        ASSERT_EQ(memory[i], at < block ? packed[i / stride * block + at] : before[i]) << i;
    }
}

} // namespace
