// While one thread makes or ends a chunk, which can take long or wait for a fork, the others use the pool.
#include <future>
#include <thread>

#include "gated_addresses.h"
#include "pool_test.h"

namespace ucxl::test
{
namespace
{

using namespace mlx5;

class waiting_threads : public pool_test
{
protected:
    void SetUp() override
    {
        pool_test::SetUp();
        _pool = must(memic_pool::create(domain(), gate, {.chunk_bytes = 4096}));
        first = must(_pool->allocate(64));
    }
    void TearDown() override
    {
        gate.open();
        _pool.reset();
        pool_test::TearDown();
    }

    // What a reader, a report and an allocation do that need nothing of the device.
    void expect_others_go_on()
    {
        auto others = std::async(std::launch::async, [this] {
            const std::uint64_t put = 7;
            std::uint64_t value     = 0;
            EXPECT_TRUE(_pool->find(first.address, 64).has_value());
            EXPECT_TRUE(_pool->copy_in(first.address + 8, 8, &put).has_value());
            EXPECT_TRUE(_pool->copy_out(first.address + 8, 8, &value).has_value());
            EXPECT_EQ(value, 7u);
            EXPECT_GE(_pool->statistics().chunks, 1u);
            const auto small = _pool->allocate(8);
            EXPECT_TRUE(small.has_value() && _pool->release(small->address).has_value());
        });
        EXPECT_EQ(others.wait_for(std::chrono::seconds(10)), std::future_status::ready);
        gate.open(); // also for those who wait by mistake
        others.get();
    }

    gated_addresses gate;
    pool_ptr _pool;
    memic_allocation first;
};

TEST_F(waiting_threads, do_not_wait_for_a_new_chunk)
{
    gate.close();
    auto grows = std::async(std::launch::async, [this] { return _pool->allocate(4096); });
    gate.wait_for_somebody();
    expect_others_go_on();
    must(_pool->release(must(grows.get()).address));
}

TEST_F(waiting_threads, do_not_wait_for_the_end_of_a_chunk)
{
    const auto large = must(_pool->allocate(8192));
    gate.close();
    auto ends = std::async(std::launch::async, [&] { return _pool->release(large.address); });
    gate.wait_for_somebody();
    expect_others_go_on();
    must(ends.get());
    EXPECT_FALSE(_pool->find(large.address, 8).has_value());
}

TEST_F(waiting_threads, share_the_chunk_that_one_of_them_makes)
{
    const auto rest = must(_pool->allocate(4096 - 64)); // the first chunk is full
    gate.close();
    std::vector<std::future<result<memic_allocation>>> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(std::async(std::launch::async, [this] { return _pool->allocate(1024); }));
    }
    gate.wait_for_somebody();
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // for the others to come as far as they can
    gate.open();
    std::vector<memic_allocation> pieces;
    for (auto& one : all) {
        pieces.push_back(must(one.get()));
    }
    EXPECT_EQ(_pool->statistics().chunks, 2u);
    for (const memic_allocation& one : pieces) {
        must(_pool->release(one.address));
    }
    must(_pool->release(rest.address));
}

} // namespace
} // namespace ucxl::test
