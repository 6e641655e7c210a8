// Streaming moves are tried at every size, below the one from which plans use them too.
#include "sample.h"

#include "ucs/pack/pack_plan.h"
#include "ucs/pack/stream.h"

#include <gtest/gtest.h>

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
}

TEST(pack_stream, any_range_of_any_layout_matches_the_oracle)
{
    const std::uint64_t first = run_seed();
    for (std::uint64_t round = 0; round < 400; ++round) {
        SCOPED_TRACE(testing::Message() << "seed " << first + round);
        test::random numbers(first + round);
        const sample of = random_sample(numbers);
        if (of.bytes.empty()) {
            continue;
        }
        const compiled_program program = compile_program(*of.what);
        const std::uint64_t offset     = pick(numbers, 0, of.bytes.size() - 1);
        ASSERT_NO_FATAL_FAILURE(check_range(of, program, offset, pick(numbers, 1, of.bytes.size() - offset), numbers));
        ASSERT_NO_FATAL_FAILURE(check_range(of, program, 0, of.bytes.size(), numbers));
    }
}

TEST(pack_stream, columns_keep_their_kernels)
{
    const auto program_of = [](const spec_ptr& of) { return compile_program(*sample_of(of).what); };
    EXPECT_FALSE(can_gather_streaming(program_of(spec::strided(spec::block(8), {{11, 8}, {21, 100}}))));
    EXPECT_FALSE(can_gather_streaming(compiled_program{}));
}

TEST(pack_stream, plans_above_the_limit_move_the_same_bytes)
{
    constexpr std::size_t block = 64, stride = 72;
    const std::size_t count = min_streamed_length / block + 3;
    const auto of           = build(*spec::strided(spec::block(block), {{count, stride}}));
    ASSERT_TRUE(of);
    const pack_plan_ptr plan = *pack_plan::compile(*of);
    EXPECT_NE(plan->describe().find("past the caches"), std::string::npos) << plan->describe();
    test::random numbers(5);
    std::vector<std::byte> memory = random_bytes(numbers, count * stride), packed(count * block), expected;
    for (std::size_t i = 0; i < count; ++i) {
        expected.insert(expected.end(), &memory[i * stride], &memory[i * stride] + block);
    }
    std::byte* const bases[] = {memory.data()};
    plan->gather(bases, 0, packed.size(), packed.data());
    EXPECT_TRUE(packed == expected);
}

} // namespace
