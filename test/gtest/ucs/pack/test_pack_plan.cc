#include "sample.h"

#include "support/must.h"
#include "support/property.h"

#include "ucs/pack/pack_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace
{

using namespace ucxl;
using namespace ucxl::test;

pack_plan_ptr plan_of(const sample& of)
{
    auto made = pack_plan::compile(of.what);
    return made ? *made : nullptr;
}

struct range {
    std::uint64_t offset;
    std::uint64_t length;
};

range random_range(test::random& numbers, std::uint64_t packed_length)
{
    const std::uint64_t begin = pick(numbers, 0, packed_length), end = pick(numbers, 0, packed_length);
    return {std::min(begin, end), std::max(begin, end) - std::min(begin, end)};
}

void check_gather(const sample& of, const pack_plan& plan, const sample_memory& memory, range part, guard_side side)
{
    const guarded_memory packed(part.length, side);
    plan.gather(memory.bases(), part.offset, part.length, packed.data());
    ASSERT_TRUE(std::ranges::equal(memory.read(of, part.offset, part.length), packed.bytes()))
        << "gather [" << part.offset << ", +" << part.length << ")\n"
        << plan.describe();
    if (const block_row row = plan.row_at(memory.bases()); row.can_gather(part.length) && part.length > 0) {
        std::ranges::fill_n(packed.data(), static_cast<std::ptrdiff_t>(part.length), std::byte{0});
        row.gather(part.offset, part.length, packed.data());
        ASSERT_TRUE(std::ranges::equal(memory.read(of, part.offset, part.length), packed.bytes()))
            << "gather of a row [" << part.offset << ", +" << part.length << ")\n"
            << plan.describe();
    }
}

void check_scatter(const sample& of, const pack_plan& plan, const sample_memory& memory, range part, guard_side side,
                   test::random& numbers)
{
    const guarded_memory packed(part.length, side);
    const std::vector<std::byte> data = random_bytes(numbers, part.length);
    std::ranges::copy(data, packed.data());
    const auto expected = memory.after_write(of, part.offset, data);
    const block_row row = plan.row_at(memory.bases());
    if (row.can_scatter(part.length) && part.length > 0 && numbers.below(2) == 0) {
        row.scatter(part.offset, part.length, packed.data());
    } else {
        plan.scatter(memory.bases(), part.offset, part.length, packed.data());
    }
    ASSERT_EQ(memory.contents(), expected) << "scatter [" << part.offset << ", +" << part.length << ")\n"
                                           << plan.describe();
}

void check_ranges(const sample& of, guard_side side, test::random& numbers, unsigned ranges)
{
    const pack_plan_ptr plan = plan_of(of);
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->packed_length(), of.bytes.size());
    const sample_memory memory(of, side, numbers);
    ASSERT_NO_FATAL_FAILURE(check_gather(of, *plan, memory, {0, of.bytes.size()}, side));
    ASSERT_NO_FATAL_FAILURE(check_scatter(of, *plan, memory, {0, of.bytes.size()}, side, numbers));
    for (; ranges > 0; --ranges) {
        const range part = random_range(numbers, of.bytes.size());
        ASSERT_NO_FATAL_FAILURE(check_gather(of, *plan, memory, part, side));
        ASSERT_NO_FATAL_FAILURE(check_scatter(of, *plan, memory, part, side, numbers));
    }
}

class pack_plan_random : public testing::TestWithParam<guard_side>
{
};

TEST_P(pack_plan_random, any_range_of_any_layout_matches_the_oracle)
{
    for_random_layouts(600, draw_sample, [side = GetParam()](test::random& numbers, const spec& described) {
        check_ranges(sample_of(described), side, numbers, 12);
    });
}

INSTANTIATE_TEST_SUITE_P(guard, pack_plan_random, testing::Values(guard_side::front, guard_side::back));

spec_part at(std::uint32_t source, std::int64_t offset, spec_ptr item)
{
    return {.source = source, .offset = offset, .item = std::move(item), .dims = {}};
}

// So many bytes that rows are fetched ahead of those that are moved.
TEST_P(pack_plan_random, any_range_of_long_lists_matches_the_oracle)
{
    test::random numbers(run_seed());
    for (const std::uint64_t mean : {120, 400, 1000, 4000}) {
        for (const std::uint32_t num_sources : {1, 3}) {
            std::vector<spec_part> list;
            const std::uint64_t number = 300000 / mean + 1;
            for (std::uint64_t i = 0; i < number; ++i) {
                const auto place = static_cast<std::int64_t>(i * 37 % number * (mean + 40));
                list.push_back(at(static_cast<std::uint32_t>(i % num_sources), place,
                                  spec::block(pick(numbers, mean - 8, mean + 30))));
            }
            ASSERT_NO_FATAL_FAILURE(check_ranges(sample_of(*spec::iov(list)), GetParam(), numbers, 6));
        }
    }
}

// One layout for each form a step can take, with odd sizes so that ranges cut everywhere.
std::vector<sample> forms()
{
    const spec_ptr b8 = spec::block(8), b7 = spec::block(7);
    const spec_ptr point = spec::iov({at(0, 0, b8), at(0, 16, spec::block(12)), at(0, 32, b8)});
    std::vector<spec_part> list, sources;
    for (std::uint64_t i = 0; i < 90; ++i) {
        const auto place = static_cast<std::int64_t>(i);
        list.push_back(at(0, (place * 37 % 90) * 70, spec::block(1 + i % 60)));
        sources.push_back(at(static_cast<std::uint32_t>(i % 3), place * 70, spec::block(1 + i % 60)));
    }
    std::vector<spec_part> even;
    for (std::uint64_t i = 0; i < 70; ++i) {
        const auto place = static_cast<std::int64_t>(i);
        const auto part  = [&](std::uint32_t source, std::uint64_t length) {
            return at(source, (place * 29 % 70) * 30, spec::block(length));
        };
        even.push_back(i < 31 ? part(1, 7) : i < 34 ? part(0, i - 20) : part(2, 12));
    }
    const auto cycles = [](std::uint32_t source, std::int64_t offset, std::uint64_t length, std::uint64_t repeat,
                           dim datums) { return spec_part{source, offset, spec::block(length), repeat, {datums}}; };
    std::vector<sample> made;
    for (const spec_ptr& of :
         {spec::block(300), spec::strided(b7, {{9, 11}}), spec::strided(b7, {{9, 110}, {11, -10}}),
          spec::strided(b7, {{3, 1110}, {9, 110}, {11, 10}}), spec::strided(spec::block(5), {{20, 30}, {4, 6}}),
          spec::strided(point, {{21, 192}, {2, 48}}), spec::strided(point, {{3, 9000}, {21, 192}, {2, -48}}),
          spec::strided(b8, {{11, 8}, {21, 100}}), spec::strided(spec::block(4), {{5, -6}, {17, 90}}),
          spec::strided(spec::block(16), {{3, 300}, {4, 20}, {9, -77}}), spec::iov(even),
          spec::strided(spec::iov(even), {{2, 9001}}), spec::iov(list), spec::iov(sources),
          spec::strided(spec::iov(list), {{3, 7001}}),
          spec::iov({at(0, 0, spec::strided(b7, {{40, 9}})), at(1, 5, b8), at(2, 0, spec::strided(point, {{15, 50}}))}),
          // records of words within two vectors
          spec::strided(point, {{19, 52}}), spec::strided(b8, {{5, 200}, {30, 40}, {3, 12}}),
          spec::strided(spec::iov({at(0, 60, b8), at(0, 0, spec::block(12)), at(0, 40, spec::block(4))}), {{23, 24}}),
          spec::strided(spec::iov({at(0, 0, b8), at(0, 20, spec::block(6))}), {{23, 40}}),
          // an array of records as arrays
          spec::iov({at(0, 0, spec::strided(spec::block(12), {{25, 32}})),
                     at(0, 12, spec::strided(spec::block(12), {{25, 32}})), at(0, 24, spec::strided(b8, {{25, 32}}))}),
          spec::iov({at(1, 5, spec::strided(b8, {{25, 40}})), at(1, 13, spec::strided(spec::block(4), {{25, 40}}))}),
          spec::interleaved({cycles(0, 0, 4, 3, {30, 4}), cycles(1, 0, 4, 3, {30, 4}), cycles(2, 0, 4, 2, {20, 4})}),
          spec::interleaved(
              {cycles(0, 0, 12, 1, {30, 15}), cycles(1, 0, 3, 2, {30, -5}), cycles(2, 0, 8, 1, {60, 9})})}) {
        made.push_back(sample_of(*of));
    }
    return made;
}

TEST(pack_plan, every_cut_of_every_form)
{
    constexpr std::byte untouched{0xee};
    test::random numbers(run_seed());
    for (const sample& of : forms()) {
        const pack_plan_ptr plan = plan_of(of);
        SCOPED_TRACE(plan->describe());
        const sample_memory memory(of, guard_side::back, numbers);
        const std::vector<std::byte> all = memory.read(of, 0, of.bytes.size());
        for (std::uint64_t begin = 0; begin <= all.size(); ++begin) {
            for (std::uint64_t end = begin; end <= all.size(); end += 1 + (end - begin) / 16) {
                std::vector<std::byte> packed(end - begin + 1, untouched);
                plan->gather(memory.bases(), begin, end - begin, packed.data());
                ASSERT_TRUE(std::equal(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                       all.begin() + static_cast<std::ptrdiff_t>(end), packed.begin()))
                    << begin << ' ' << end;
                ASSERT_EQ(packed.back(), untouched) << begin << ' ' << end;
            }
        }
        for (std::uint64_t begin = 0; begin <= all.size(); begin += 1 + begin / 8) {
            for (std::uint64_t end = begin; end <= all.size(); end += 1 + (end - begin) / 8) {
                ASSERT_NO_FATAL_FAILURE(
                    check_scatter(of, *plan, memory, {begin, end - begin}, guard_side::front, numbers));
            }
        }
    }
}

TEST(pack_plan, fragments_in_sequence_make_the_whole)
{
    test::random numbers(run_seed());
    for (const sample& of : forms()) {
        const pack_plan_ptr plan = plan_of(of);
        const sample_memory memory(of, guard_side::front, numbers);
        for (const std::uint64_t fragment : {1, 2, 3, 5, 8, 13, 64, 100}) {
            std::vector<std::byte> packed(of.bytes.size());
            for (std::uint64_t at = 0; at < packed.size(); at += fragment) {
                plan->gather(memory.bases(), at, std::min(fragment, packed.size() - at), packed.data() + at);
            }
            ASSERT_EQ(packed, memory.read(of, 0, packed.size())) << fragment << '\n' << plan->describe();
        }
    }
}

TEST(pack_plan, zero_length_touches_nothing)
{
    test::random numbers(run_seed());
    for (const sample& of : forms()) {
        const pack_plan_ptr plan = plan_of(of);
        const std::vector<std::byte*> nowhere(of.what->num_sources());
        plan->gather(nowhere, 0, 0, nullptr);
        plan->gather(nowhere, of.bytes.size(), 0, nullptr);
        plan->scatter(nowhere, of.bytes.size(), 0, nullptr);
        pack_plan::copy(*plan, nowhere, of.bytes.size(), *plan, nowhere, 0, 0);
    }
    const auto empty = pack_plan::compile(std::make_shared<const layout>());
    ASSERT_TRUE(empty);
    EXPECT_EQ((*empty)->packed_length(), 0u);
    const std::vector<std::byte*> nowhere(1);
    (*empty)->gather(nowhere, 0, 0, nullptr);
}

TEST(pack_plan, overlapping_blocks_scatter_in_packed_order)
{
    test::random numbers(run_seed());
    const spec_ptr point = spec::iov({at(0, 0, spec::block(8)), at(0, 4, spec::block(12)), at(0, 2, spec::block(3))});
    const spec_part crossing{0, 0, spec::block(8), 1, {{60, 10}}}, opposite{0, 400, spec::block(8), 1, {{60, -7}}};
    for (const spec_ptr& of :
         {spec::strided(spec::block(16), {{50, 5}}), spec::strided(spec::block(300), {{50, -70}}),
          spec::strided(point, {{100, 3}}), spec::strided(spec::block(4), {{20, 3}, {20, 1}}),
          spec::strided(spec::block(8), {{64, 0}}),
          // the second block of an iteration is the first one of the tenth after it
          spec::strided(spec::iov({at(0, 0, spec::block(8)), at(0, 100, spec::block(8))}), {{90, 10}}),
          spec::strided(spec::iov({at(0, 100, spec::block(8)), at(0, 0, spec::block(8))}), {{90, 10}}),
          spec::interleaved({crossing, opposite})}) {
        ASSERT_NO_FATAL_FAILURE(check_ranges(sample_of(*of), guard_side::back, numbers, 50));
    }
}

TEST(pack_plan, describe_names_the_kernels)
{
    EXPECT_EQ(plan_of(sample_of(*spec::strided(spec::block(8), {{8192, 65536}})))->describe(),
              "8192 x copy(8) stride 65536");
    EXPECT_EQ(plan_of(sample_of(*spec::strided(spec::block(100), {{4, 99999}, {20, 200}})))->describe(),
              "4 x stride 99999, 20 x vector(100) stride 200");
    EXPECT_EQ(plan_of(sample_of(*spec::block(4096)))->describe(), "vectors(4096)");
    EXPECT_EQ(plan_of(sample_of(*spec::block(16385)))->describe(), "memcpy(16385)");
    EXPECT_EQ(must(pack_plan::compile(std::make_shared<const layout>()))->describe(), "nothing");
}

TEST(pack_plan, threads_run_one_plan_concurrently)
{
    test::random numbers(run_seed());
    for (const sample& of : forms()) {
        const pack_plan_ptr plan = plan_of(of);
        const sample_memory shared(of, guard_side::back, numbers);
        const std::vector<std::byte> expected = shared.read(of, 0, of.bytes.size());
        std::vector<std::thread> threads;
        std::atomic<int> wrong = 0;
        for (unsigned i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                test::random own(i);
                const sample_memory target(of, guard_side::back, own);
                std::vector<std::byte> packed(expected.size());
                for (int round = 0; round < 20; ++round) {
                    const range part = random_range(own, packed.size());
                    plan->gather(shared.bases(), part.offset, part.length, packed.data());
                    plan->scatter(target.bases(), part.offset, part.length, packed.data());
                    pack_plan::copy(*plan, target.bases(), 0, *plan, shared.bases(), 0, packed.size());
                    wrong += target.read(of, 0, packed.size()) != expected;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(wrong, 0) << plan->describe();
    }
}

} // namespace
