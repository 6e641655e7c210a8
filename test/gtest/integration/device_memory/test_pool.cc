// Allocations as the device, peers and threads use them.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "pool_test.h"
#include "support/random.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

class memory_pool : public pool_test
{
};

TEST_F(memory_pool, bytes_move_by_one_key_in_both_directions_at_any_offset)
{
    const auto memory = must(pool->allocate(1000));
    const auto host   = host_memory(1000);
    std::vector<std::uint8_t> expected(memory.length, 0);
    for (std::uint64_t offset = 0; offset < 24; ++offset) {
        const std::uint64_t length = 1 + offset * 37;
        ASSERT_EQ(pair.write(host->piece(offset, length), number(memory.address) + offset, memory.key), IBV_WC_SUCCESS);
        std::copy_n(host->bytes.begin() + static_cast<std::ptrdiff_t>(offset), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(offset));
        ASSERT_EQ(contents(memory), expected);
    }
    const auto back = host_memory(1000);
    ASSERT_EQ(pair.read(back->piece(3, 500), number(memory.address) + 1, memory.key), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(back->bytes.begin() + 3, back->bytes.begin() + 503, expected.begin() + 1));
    // As the local buffer of a write and of a read.
    const ibv_sge local{number(memory.address) + 7, 100, memory.key};
    ASSERT_EQ(pair.write(local, number(back->bytes.data()) + 11, back->mr->rkey), IBV_WC_SUCCESS);
    EXPECT_TRUE(std::equal(back->bytes.begin() + 11, back->bytes.begin() + 111, expected.begin() + 7));
    ASSERT_EQ(pair.read(local, number(host->bytes.data()) + 600, host->mr->rkey), IBV_WC_SUCCESS);
    std::copy_n(host->bytes.begin() + 600, 100, expected.begin() + 7);
    EXPECT_EQ(contents(memory), expected);
}

TEST_F(memory_pool, the_device_adds_in_it_and_puts_results_into_it)
{
    const auto counter = must(pool->allocate(8));
    const auto fetched = must(pool->allocate(8));
    for (std::uint64_t i = 0; i < 5; ++i) {
        const ibv_sge result{number(fetched.address), 8, fetched.key};
        ASSERT_EQ(pair.fetch_add(result, number(counter.address), counter.key, 3), IBV_WC_SUCCESS);
        EXPECT_EQ(word(fetched), 3 * i);
    }
    EXPECT_EQ(word(counter), 15u);
}

TEST_F(memory_pool, small_allocations_share_a_chunk_and_a_key_and_no_byte)
{
    const auto host = host_memory(64);
    std::vector<memic_allocation> all;
    for (std::uint64_t length = 1; length <= 64; ++length) {
        all.push_back(must(pool->allocate(length)));
        EXPECT_EQ(all.back().length, (length + 7) / 8 * 8);
        EXPECT_EQ(number(all.back().address) % (length > 56 ? 64 : 8), 0u);
    }
    EXPECT_EQ(pool->statistics().chunks, 1u);
    EXPECT_EQ(pool->statistics().allocations, 64u);
    for (const memic_allocation& one : all) {
        EXPECT_EQ(one.key, all.front().key);
        ASSERT_EQ(contents(one), std::vector<std::uint8_t>(one.length, 0));
        ASSERT_EQ(pair.write(host->piece(0, one.length), number(one.address), one.key), IBV_WC_SUCCESS);
    }
    for (const memic_allocation& one : all) {
        EXPECT_TRUE(std::ranges::equal(contents(one), std::span(host->bytes).first(one.length)));
        must(pool->release(one.address));
    }
    EXPECT_EQ(pool->statistics().free_bytes, pool->statistics().bytes);
}

TEST_F(memory_pool, fresh_memory_is_zero)
{
    const auto first = must(pool->allocate(200));
    const std::vector<std::uint8_t> secret(200, 0xa5);
    must(pool->copy_in(first.address, 200, secret.data()));
    must(pool->release(first.address));
    const auto second = must(pool->allocate(200));
    EXPECT_EQ(second.address, first.address);
    EXPECT_EQ(contents(second), std::vector<std::uint8_t>(200, 0));
}

TEST_F(memory_pool, an_allocation_that_comes_and_goes_costs_one_chunk)
{
    for (int i = 0; i < 100; ++i) {
        must(pool->release(must(pool->allocate(8)).address));
    }
    EXPECT_EQ(addresses.reserved, 1u);
    EXPECT_EQ(pool->statistics().chunks, 1u);
    EXPECT_EQ(pool->statistics().allocations, 0u);
}

TEST_F(memory_pool, of_empty_chunks_the_largest_stays)
{
    pool = new_pool(4096);
    std::vector<memic_allocation> all;
    for (int i = 0; i < 3; ++i) {
        all.push_back(must(pool->allocate(4096)));
    }
    EXPECT_EQ(pool->statistics().chunks, 3u);
    for (const memic_allocation& one : all) {
        must(pool->release(one.address));
    }
    EXPECT_EQ(pool->statistics().chunks, 1u);
    EXPECT_EQ(addresses.bytes, 4096u);
    must(pool->release(must(pool->allocate(5000)).address)); // more than a chunk: released at once
    EXPECT_EQ(addresses.bytes, 4096u);
}

TEST_F(memory_pool, the_key_of_an_exclusive_allocation_shows_its_bytes_only_and_ends_with_it)
{
    const auto shared = must(pool->allocate(24));
    const auto secret = must(pool->allocate(20, memic_sharing::exclusive));
    const auto other  = must(pool->allocate(20, memic_sharing::exclusive));
    const auto host   = host_memory(64);
    EXPECT_EQ(secret.length, 24u);
    EXPECT_NE(secret.key, shared.key);
    EXPECT_NE(secret.key, other.key);
    ASSERT_EQ(pair.write(host->piece(0, 24), number(secret.address), secret.key), IBV_WC_SUCCESS);
    ASSERT_EQ(pair.write(host->piece(0, 1), number(secret.address) + 24, secret.key), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
    ASSERT_EQ(pair.write(host->piece(0, 8), number(secret.address) - 8, secret.key), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
    ASSERT_EQ(pair.write(host->piece(0, 8), number(secret.address), shared.key), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
    EXPECT_EQ(contents(other), std::vector<std::uint8_t>(24, 0));
    must(pool->release(secret.address));
    ASSERT_EQ(pair.write(host->piece(0, 8), number(secret.address), secret.key), IBV_WC_REM_ACCESS_ERR);
    pair.reconnect();
    EXPECT_EQ(pool->statistics().chunks, 2u);
}

// The device uses the index of a key again, and the process the addresses.
TEST_F(memory_pool, the_key_of_an_exclusive_allocation_does_not_come_back_for_a_later_one)
{
    std::set<std::pair<std::byte*, std::uint32_t>> ended;
    for (int i = 0; i < 1000; ++i) {
        const auto secret = must(pool->allocate(64, memic_sharing::exclusive));
        ASSERT_TRUE(ended.emplace(secret.address, secret.key).second) << i;
        must(pool->release(secret.address));
    }
}

TEST_F(memory_pool, exclusive_chunks_take_nobody_else_in)
{
    const auto secret = must(pool->allocate(8, memic_sharing::exclusive));
    const auto shared = must(pool->allocate(8));
    EXPECT_NE(shared.key, secret.key);
    EXPECT_EQ(pool->statistics().bytes, 8u + 65536u);
}

TEST_F(memory_pool, finds_ranges_inside_one_allocation_only)
{
    const auto first  = must(pool->allocate(16));
    const auto second = must(pool->allocate(8));
    ASSERT_EQ(second.address, first.address + 16);
    const auto found = pool->find(first.address + 9, 7);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->address, first.address);
    EXPECT_EQ(found->length, 16u);
    EXPECT_EQ(found->key, first.key);
    EXPECT_FALSE(pool->find(first.address + 9, 8).has_value());
    EXPECT_FALSE(pool->find(first.address - 1, 1).has_value());
    EXPECT_TRUE(pool->find(second.address, 8).has_value());
    EXPECT_FALSE(pool->find(second.address, 9).has_value());
    EXPECT_FALSE(pool->find(second.address + 8, 0).has_value());
    EXPECT_FALSE(pool->find(&found, 1).has_value());
    EXPECT_FALSE(pool->find(nullptr, 0).has_value());
    EXPECT_FALSE(pool->find(first.address, ~std::uint64_t{0}).has_value());
    must(pool->release(first.address));
    EXPECT_FALSE(pool->find(first.address, 1).has_value());
}

TEST_F(memory_pool, refuses_what_is_no_allocation)
{
    const auto memory = must(pool->allocate(16));
    EXPECT_EQ(error_of(pool->allocate(0)), errc::invalid_param);
    EXPECT_EQ(error_of(pool->release(memory.address + 8)), errc::invalid_param);
    EXPECT_EQ(error_of(pool->release(&memory)), errc::invalid_param);
    must(pool->release(memory.address));
    EXPECT_EQ(error_of(pool->release(memory.address)), errc::invalid_param);
}

// Each thread checks that nobody writes into its allocations.
TEST_F(memory_pool, threads_allocate_copy_and_release)
{
    pool = new_pool(4096);
    std::vector<std::jthread> threads;
    std::atomic<int> refused = 0;
    for (std::uint64_t id = 0; id < 4; ++id) {
        threads.emplace_back([&, id] {
            random from(derive_seed(run_seed(), id));
            std::map<std::byte*, std::vector<std::uint8_t>> mine;
            for (int step = 0; step < 2000; ++step) {
                if (mine.size() < 12 && from.below(100) < 60) {
                    const std::uint64_t length = 1 + from.below(from.one_in(20) ? 6000 : 90);
                    const auto sharing         = from.one_in(30) ? memic_sharing::exclusive : memic_sharing::shared;
                    const auto made            = pool->allocate(length, sharing);
                    if (!made) {
                        EXPECT_EQ(made.error().code, errc::no_memory);
                        ++refused;
                        continue;
                    }
                    std::vector<std::uint8_t> bytes(length);
                    std::ranges::generate(bytes, [&] { return static_cast<std::uint8_t>(from.next()); });
                    EXPECT_TRUE(pool->copy_in(made->address, length, bytes.data()).has_value());
                    EXPECT_TRUE(pool->find(made->address, length).has_value());
                    mine.emplace(made->address, std::move(bytes));
                } else if (!mine.empty()) {
                    auto chosen = mine.begin();
                    std::advance(chosen, from.below(mine.size()));
                    std::vector<std::uint8_t> found(chosen->second.size());
                    EXPECT_TRUE(pool->copy_out(chosen->first, found.size(), found.data()).has_value());
                    EXPECT_EQ(found, chosen->second);
                    EXPECT_TRUE(pool->release(chosen->first).has_value());
                    mine.erase(chosen);
                }
            }
            for (const auto& [address, bytes] : mine) {
                EXPECT_TRUE(pool->release(address).has_value());
            }
        });
    }
    threads.clear();
    EXPECT_LT(refused, 400);
    EXPECT_EQ(pool->statistics().allocations, 0u);
    EXPECT_LE(pool->statistics().chunks, 1u);
}

} // namespace
} // namespace ucxl::test
