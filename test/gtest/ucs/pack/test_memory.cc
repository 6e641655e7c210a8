// Allocation failures and layouts larger than any buffer.
#include "support/alloc_failure.h"
#include "support/must.h"

#include "ucs/layout/build.h"
#include "ucs/layout/walk.h"
#include "ucs/pack/pack_plan.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace
{

using namespace ucxl;
using ucxl::test::must;

layout_ptr many_forms()
{
    const dim column[] = {{100, 64}};
    const auto strided = must(make_strided({.length = 8}, column));
    std::vector<iov_part> parts;
    for (int i = 0; i < 200; ++i) {
        parts.push_back({0, i * 10000,
                         i % 50 == 0 ? element{.nested = strided} : element{.length = 8u + static_cast<unsigned>(i)}});
    }
    const auto list    = must(make_iov(parts));
    const dim planes[] = {{3, 3'000'000}};
    return must(make_strided({.nested = list}, planes));
}

TEST(pack_plan_memory, every_failing_allocation_is_no_memory)
{
    const layout_ptr of = many_forms();
    const auto failures = test::fail_every_allocation([&] {
        auto made = pack_plan::compile(of);
        return made.has_value() || (made.error().code == errc::no_memory && of.use_count() == 1);
    });
    EXPECT_GT(failures, 5);
}

TEST(pack_plan_memory, running_a_plan_allocates_nothing)
{
    const auto plan = must(pack_plan::compile(many_forms()));
    std::vector<std::byte> memory(9'000'000), target(9'000'000), packed(plan->packed_length());
    std::byte* bases[]        = {memory.data()};
    std::byte* target_bases[] = {target.data()};
    test::fail_allocation_after(0);
    plan->gather(bases, 1, packed.size() - 2, packed.data());
    plan->scatter(bases, 1, packed.size() - 2, packed.data());
    pack_plan::copy(*plan, target_bases, 1, *plan, bases, 3, packed.size() - 4);
    EXPECT_FALSE(test::stop_failing_allocations());
}

// Loops that differ by their strides only, over the same blocks: `count` times 2 x 16 blocks of 1 to 3 bytes.
layout_ptr many_loops_over_the_same_blocks(std::uint64_t number, std::uint64_t count)
{
    std::vector<iov_part> blocks, loops;
    for (unsigned i = 0; i < 16; ++i) {
        blocks.push_back({0, i * 6 + i * i % 3, {.length = 1u + i * i % 7 % 3}});
    }
    const dim two[]   = {{2, 300}};
    const auto shared = must(make_strided({.nested = must(make_iov(blocks))}, two));
    for (std::uint64_t i = 0; i < number; ++i) {
        const dim apart[] = {{count, static_cast<std::int64_t>(1000 + i)}};
        loops.push_back(
            {0, static_cast<std::int64_t>(i) * 30'000, {.nested = must(make_strided({.nested = shared}, apart))}});
    }
    return must(make_iov(loops));
}

// Eight times become a record, twice a table.
TEST(pack_plan_memory, loops_over_the_same_blocks_take_no_multiple_of_their_blocks)
{
    for (const std::uint64_t count : {2, 8}) {
        const layout_ptr of         = many_loops_over_the_same_blocks(20'000, count);
        const std::uint64_t before  = test::allocated_bytes();
        const auto plan             = must(pack_plan::compile(of));
        const std::uint64_t of_plan = test::allocated_bytes() - before;
        EXPECT_LT(of_plan, 80 * of->wire_length()) << count;
    }
}

TEST(pack_plan_memory, loops_over_the_same_blocks_move_where_the_plan_has_no_room_to_list_them)
{
    for (const std::uint64_t count : {2, 8}) {
        const layout_ptr of = many_loops_over_the_same_blocks(2'000, count);
        const auto plan     = must(pack_plan::compile(of));
        std::vector<std::byte> memory(static_cast<std::size_t>(of->bounds(0).true_ub)), packed(plan->packed_length());
        for (std::size_t i = 0; i < packed.size(); ++i) {
            packed[i] = static_cast<std::byte>(i * 7 + i / 251);
        }
        std::byte* bases[] = {memory.data()};
        plan->scatter(bases, 0, packed.size(), packed.data());
        std::size_t at = 0;
        for (block_cursor blocks(*of); !blocks.at_end(); blocks.advance(blocks.block().length)) {
            const placed_block block = blocks.block();
            ASSERT_TRUE(
                std::equal(&packed[at], &packed[at] + block.length, &memory[static_cast<std::size_t>(block.offset)]))
                << at;
            at += block.length;
        }
        std::vector<std::byte> back(packed.size());
        plan->gather(bases, 0, back.size(), back.data());
        EXPECT_EQ(back, packed);
    }
}

class sparse_memory
{
public:
    explicit sparse_memory(std::size_t length) : _length(length)
    {
        void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        _data    = at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    }
    ~sparse_memory()
    {
        if (_data != nullptr) {
            munmap(_data, _length);
        }
    }
    sparse_memory(const sparse_memory&)            = delete;
    sparse_memory& operator=(const sparse_memory&) = delete;

    std::byte* data() const { return _data; }

private:
    std::size_t _length;
    std::byte* _data;
};

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// Marks packed bytes around `at` through the layout's own definition (given as a function) and reads them back by
// gather.
template <typename Place>
void check_far(const layout_ptr& of, const sparse_memory& memory, Place&& place, std::uint64_t at)
{
    const auto plan    = must(pack_plan::compile(of));
    std::byte* bases[] = {memory.data()};
    std::vector<std::byte> packed(200), back(200);
    for (std::uint64_t i = 0; i < packed.size(); ++i) {
        packed[i] = static_cast<std::byte>(i * 5 + at + 1);
    }
    plan->scatter(bases, at, packed.size(), packed.data());
    for (std::uint64_t i = 0; i < packed.size(); ++i) {
        ASSERT_EQ(memory.data()[place(at + i)], packed[i]) << plan->describe() << " at " << at + i;
    }
    plan->gather(bases, at, back.size(), back.data());
    EXPECT_EQ(back, packed);
}

TEST(pack_plan_memory, packed_offsets_beyond_4_gib)
{
    const sparse_memory memory(24 * gib);
    ASSERT_NE(memory.data(), nullptr);

    const dim blocks[]     = {{5000, 3'000'000}};
    const auto strided     = must(make_strided({.length = 2'000'000}, blocks));
    const auto of_block    = [](std::uint64_t at) { return at / 2'000'000 * 3'000'000 + at % 2'000'000; };
    const iov_part parts[] = {{0, 0, {.length = 3 * gib}},
                              {0, 4 * static_cast<std::int64_t>(gib), {.length = 5 * gib}}};
    const auto list        = must(make_iov(parts));
    const auto of_part     = [](std::uint64_t at) { return at < 3 * gib ? at : at + gib; };
    const iov_part pair[]  = {{0, 0, {.length = 7'000}}, {0, 10'000, {.length = 9'000}}};
    const dim records[]    = {{400'000, 20'000}};
    const auto record      = must(make_strided({.nested = must(make_iov(pair))}, records));
    const auto of_record   = [](std::uint64_t at) {
        const std::uint64_t into = at % 16'000;
        return at / 16'000 * 20'000 + (into < 7'000 ? into : into + 3'000);
    };
    for (const std::uint64_t at : {4 * gib - 100, 4 * gib, 3 * gib - 50, 5 * gib + 12345, 5'999'999'950ul}) {
        ASSERT_NO_FATAL_FAILURE(check_far(strided, memory, of_block, at));
        ASSERT_NO_FATAL_FAILURE(check_far(list, memory, of_part, at));
        ASSERT_NO_FATAL_FAILURE(check_far(record, memory, of_record, at));
    }
}

TEST(pack_plan_memory, one_copy_of_more_than_4_gib_of_small_sparse_pages_is_not_cut)
{
    // One byte of every 64 KB: 100,000 blocks over 6.5 GB.
    const sparse_memory memory(8 * gib);
    ASSERT_NE(memory.data(), nullptr);
    const dim far[]    = {{100'000, 65536}};
    const auto plan    = must(pack_plan::compile(must(make_strided({.length = 1}, far))));
    std::byte* bases[] = {memory.data()};
    std::vector<std::byte> packed(100'000), back(100'000);
    for (std::size_t i = 0; i < packed.size(); ++i) {
        packed[i] = static_cast<std::byte>(i * 31 + i / 253);
    }
    plan->scatter(bases, 0, packed.size(), packed.data());
    plan->gather(bases, 0, back.size(), back.data());
    EXPECT_EQ(back, packed);
    EXPECT_EQ(memory.data()[65536 * 99'999ul], packed.back());
}

} // namespace
