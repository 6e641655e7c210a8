// What happens where the device has no more memory, keys or addresses.
#include "pool_test.h"
#include "support/alloc_failure.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

class exhaustion : public pool_test
{
protected:
    std::vector<memic_allocation> take_all(std::uint64_t length)
    {
        std::vector<memic_allocation> all;
        for (;;) {
            const auto made = pool->allocate(length);
            if (!made) {
                EXPECT_EQ(made.error().code, errc::no_memory);
                return all;
            }
            all.push_back(*made);
        }
    }
};

TEST_F(exhaustion, all_memory_can_be_had_and_is_there_again_when_released)
{
    for (int round = 0; round < 2; ++round) {
        const auto all = take_all(4096);
        EXPECT_EQ(all.size(), device_bytes() / 4096);
        EXPECT_EQ(pool->statistics().free_bytes, 0u);
        EXPECT_EQ(pool->statistics().bytes, device_bytes());
        must(pool->release(all[5].address));
        EXPECT_FALSE(pool->allocate(4104).has_value());
        const auto again = must(pool->allocate(4096));
        EXPECT_EQ(again.address, all[5].address);
        for (const memic_allocation& one : all) {
            must(pool->release(one.address));
        }
        EXPECT_EQ(pool->statistics().chunks, 1u);
    }
}

TEST_F(exhaustion, the_error_names_the_request_what_is_used_and_the_limit)
{
    const auto all   = take_all(65536);
    const auto error = pool->allocate(72).error();
    EXPECT_EQ(error.code, errc::no_memory);
    for (const std::uint64_t part : {std::uint64_t{72}, device_bytes()}) {
        EXPECT_NE(error.message.find(std::to_string(part) + " "), std::string::npos) << error.message;
    }
    EXPECT_NE(error.message.find(std::to_string(device_bytes()) + " bytes are in use"), std::string::npos)
        << error.message;
    const auto larger = pool->allocate(device_bytes() + 1).error();
    EXPECT_EQ(larger.code, errc::no_memory);
    EXPECT_NE(larger.message.find(std::to_string(device_bytes() + 1)), std::string::npos) << larger.message;
    EXPECT_EQ(error_of(pool->allocate(~std::uint64_t{0})), errc::no_memory);
}

TEST_F(exhaustion, chunks_are_smaller_where_a_whole_one_has_no_room)
{
    const auto others = device_piece(device_bytes() - 20480);
    ASSERT_NE(others, nullptr);
    const auto word = must(pool->allocate(8));
    EXPECT_EQ(pool->statistics().bytes, 16384u);
    const auto rest = must(pool->allocate(16384 - 8 - 56)); // behind the word, from a multiple of 64 on
    EXPECT_EQ(rest.key, word.key);
    EXPECT_EQ(must(pool->allocate(4096)).length, 4096u); // a chunk as large as that
    EXPECT_EQ(pool->statistics().bytes, 20480u);
    EXPECT_EQ(must(pool->allocate(56)).key, word.key);
    EXPECT_FALSE(pool->allocate(8).has_value());
}

TEST_F(exhaustion, the_spare_chunk_makes_room)
{
    must(pool->release(must(pool->allocate(8)).address));
    EXPECT_EQ(pool->statistics().chunks, 1u);
    const auto all = must(pool->allocate(device_bytes()));
    EXPECT_EQ(all.length, device_bytes());
    EXPECT_EQ(pool->statistics().chunks, 1u);
    must(pool->release(all.address));
    EXPECT_EQ(pool->statistics().chunks, 0u);
    const auto exclusive = must(pool->allocate(device_bytes() - 8, memic_sharing::exclusive));
    EXPECT_EQ(exclusive.length, device_bytes() - 8);
}

TEST_F(exhaustion, without_addresses_nothing_is_left_of_a_chunk)
{
    addresses.refuses = true;
    for (int i = 0; i < 100; ++i) {
        const auto refused = pool->allocate(4096);
        ASSERT_EQ(error_of(refused), errc::no_memory);
        ASSERT_NE(refused.error().message.find("no addresses for this test"), std::string::npos);
    }
    EXPECT_EQ(pool->statistics().chunks, 0u);
    addresses.refuses = false;
    EXPECT_TRUE(pool->allocate(4096).has_value());
}

// Not while memory is released: the software device, which is a part of this process, cannot end an object then.
TEST_F(exhaustion, a_failed_allocation_of_host_memory_changes_nothing)
{
    for (const memic_sharing sharing : {memic_sharing::shared, memic_sharing::exclusive}) {
        std::int64_t number = 0;
        for (bool has_failed = true; has_failed; ++number) {
            pool = new_pool();
            result<memic_allocation> made;
            fail_allocation_after(number);
            try {
                made = pool->allocate(24, sharing);
            } catch (const std::bad_alloc&) {
                made = fail(errc::no_memory, "");
            }
            has_failed                 = stop_failing_allocations();
            const memic_statistics now = pool->statistics();
            EXPECT_TRUE(made.has_value() || made.error().code == errc::no_memory) << made.error().message;
            EXPECT_EQ(now.bytes - now.free_bytes, made ? 24u : 0u);
            EXPECT_LE(now.chunks, made || sharing == memic_sharing::shared ? 1u : 0u);
            EXPECT_EQ(addresses.bytes, now.bytes);
            // What is left is a spare chunk, which can be given up.
            EXPECT_TRUE(made.has_value() || pool->allocate(device_bytes()).has_value()) << number;
            pool.reset();
            EXPECT_EQ(addresses.bytes, 0u);
            EXPECT_NE(device_piece(device_bytes()), nullptr) << number;
        }
        EXPECT_GT(number, 10);
    }
}

} // namespace
} // namespace ucxl::test
