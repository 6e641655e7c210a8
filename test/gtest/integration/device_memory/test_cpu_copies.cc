// Access by the CPU to device memory, which mlx5 allows in words of 4 bytes only.
#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include "pool_test.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

class cpu_copies : public pool_test
{
};

TEST_F(cpu_copies, every_offset_length_and_alignment_of_the_host)
{
    const auto memory = must(pool->allocate(48));
    std::vector<std::uint8_t> host(64);
    for (std::size_t i = 0; i < host.size(); ++i) {
        host[i] = static_cast<std::uint8_t>(i + 1);
    }
    for (std::uint64_t offset = 0; offset < 9; ++offset) {
        for (std::uint64_t length = 0; length + offset <= 40; ++length) {
            for (std::uint64_t shift = 0; shift < 4; ++shift) {
                std::vector<std::uint8_t> expected(48, 0xee);
                must(pool->copy_in(memory.address, 48, expected.data()));
                must(pool->copy_in(memory.address + offset, length, host.data() + shift));
                std::copy_n(host.begin() + static_cast<std::ptrdiff_t>(shift), length,
                            expected.begin() + static_cast<std::ptrdiff_t>(offset));
                ASSERT_EQ(contents(memory), expected) << offset << " " << length << " " << shift;
                std::vector<std::uint8_t> found(length + 8, 0x11);
                must(pool->copy_out(memory.address + offset, length, found.data() + shift));
                ASSERT_TRUE(std::equal(found.begin() + static_cast<std::ptrdiff_t>(shift),
                                       found.begin() + static_cast<std::ptrdiff_t>(shift + length),
                                       expected.begin() + static_cast<std::ptrdiff_t>(offset)));
                ASSERT_EQ(found[shift + length], 0x11);
            }
        }
    }
}

TEST_F(cpu_copies, more_than_one_bounce_buffer)
{
    const auto memory = must(pool->allocate(30000));
    std::vector<std::uint8_t> host(30000);
    for (std::size_t i = 0; i < host.size(); ++i) {
        host[i] = static_cast<std::uint8_t>(i % 251);
    }
    must(pool->copy_in(memory.address + 3, 29990, host.data() + 1));
    std::vector<std::uint8_t> found(29990);
    must(pool->copy_out(memory.address + 3, 29990, found.data()));
    EXPECT_TRUE(std::equal(found.begin(), found.end(), host.begin() + 1));
    EXPECT_EQ(contents(memory)[2], 0);
    EXPECT_EQ(contents(memory)[29993], 0);
}

TEST_F(cpu_copies, ranges_outside_one_allocation_are_refused_and_nothing_is_written)
{
    const auto first  = must(pool->allocate(16));
    const auto second = must(pool->allocate(8));
    ASSERT_EQ(second.address, first.address + 16);
    std::vector<std::uint8_t> bytes(64, 0x77);
    EXPECT_EQ(error_of(pool->copy_in(first.address, 17, bytes.data())), errc::invalid_param);
    EXPECT_EQ(error_of(pool->copy_in(second.address + 4, 8, bytes.data())), errc::invalid_param);
    EXPECT_EQ(error_of(pool->copy_in(second.address + 64, 8, bytes.data())), errc::invalid_param);
    EXPECT_EQ(error_of(pool->copy_out(first.address + 15, 2, bytes.data())), errc::invalid_param);
    EXPECT_EQ(error_of(pool->copy_out(&bytes, 1, bytes.data())), errc::invalid_param);
    EXPECT_EQ(contents(first), std::vector<std::uint8_t>(16, 0));
    EXPECT_EQ(contents(second), std::vector<std::uint8_t>(8, 0));
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(64, 0x77));
}

// Bytes are written right before and behind a word to which the device adds.
TEST_F(cpu_copies, no_atomic_operation_on_a_neighbour_is_lost)
{
    const auto before  = must(pool->allocate(3));
    const auto counter = must(pool->allocate(8));
    const auto behind  = must(pool->allocate(3));
    ASSERT_EQ(counter.address, before.address + 8);
    ASSERT_EQ(behind.address, counter.address + 8);
    const auto host                    = host_memory(8);
    std::atomic<std::uint64_t> written = 0;
    std::uint64_t added                = 0;
    {
        const std::jthread writer([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                const std::uint64_t bytes = ++written;
                must(pool->copy_in(before.address + 5, 3, &bytes));
                must(pool->copy_in(behind.address, 3, &bytes));
            }
        });
        for (; added < 5000 || written < 5000; ++added) {
            ASSERT_EQ(pair.fetch_add(host->piece(0, 8), number(counter.address), counter.key, 1), IBV_WC_SUCCESS);
        }
    }
    EXPECT_EQ(word(counter), added);
}

// Two threads write different bytes of the same word.
TEST_F(cpu_copies, bytes_beside_one_another_from_two_threads)
{
    const auto memory = must(pool->allocate(8));
    std::latch all_are_there(4);
    std::vector<std::jthread> threads;
    for (std::uint8_t id = 0; id < 4; ++id) {
        threads.emplace_back([&, id] {
            all_are_there.arrive_and_wait();
            for (int i = 0; i < 200000; ++i) {
                const auto value   = static_cast<std::uint8_t>(i);
                std::uint8_t found = 0;
                must(pool->copy_in(memory.address + id, 1, &value));
                must(pool->copy_out(memory.address + id, 1, &found));
                ASSERT_EQ(found, value);
            }
        });
    }
}

} // namespace
} // namespace ucxl::test
