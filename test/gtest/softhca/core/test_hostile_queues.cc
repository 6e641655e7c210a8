// Processes that write arbitrary bytes to their queues: nothing outside keys and queues is touched.
#include "hostile_queues.h"

#include "support/random.h"

#include <gtest/gtest.h>

namespace ucxl::softhca::test
{

namespace
{

using ucxl::test::random;
using ucxl::test::run_seed;

TEST(hostile_queues, nothing_is_touched_but_keys_and_queues)
{
    random numbers(run_seed());
    hostile_queues queues;
    // By hand: a sequence of steps on one state, in which no step can be left out.
    for (int round = 0; round < 6000; round++) {
        std::vector<std::uint8_t> bytes(numbers.below(1500));
        for (std::uint8_t& one : bytes) {
            one = static_cast<std::uint8_t>(numbers.one_in(4) ? numbers.below(8) : numbers.next());
        }
        queues.run(bytes);
        ASSERT_EQ(queues.violation(), "") << "seed " << run_seed() << " round " << round;
    }
    EXPECT_GT(queues.completions(), 50'000u);
    EXPECT_GT(queues.bytes_moved(), 100'000u);
}

} // namespace

} // namespace ucxl::softhca::test
