// How many orders of steps a test tries, and which.
//
// Example: try_orders(20'000, [](std::uint64_t seed) { return one_order(seed).run(); });
#pragma once

#include "support/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace ucxl::test
{

// UCXL_TEST_SCHEDULES=1000000 for as many.
inline std::uint64_t num_schedules(std::uint64_t num_usual)
{
    const char* const wanted = std::getenv("UCXL_TEST_SCHEDULES");
    return wanted == nullptr ? num_usual : std::strtoull(wanted, nullptr, 10);
}

// Tries the orders of the day. `try_one` takes the seed, and returns what is wrong, or null. The number of a schedule
// that fails is a UCXL_TEST_SEED that begins with it.
template <typename TryOne>
void try_orders(std::uint64_t num_usual, TryOne&& try_one)
{
    const std::uint64_t from = run_seed(), count = num_schedules(num_usual);
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        const char* const wrong = try_one(seed);
        ASSERT_EQ(wrong, nullptr) << wrong << ", schedule " << seed;
    }
    testing::Test::RecordProperty("schedules", std::to_string(count));
}

// Whether the orders were interesting: something happened in at least so many of them on average.
inline void expect_often(std::uint64_t number, double in_each, std::uint64_t num_usual, const char* fault)
{
    constexpr std::uint64_t enough_to_tell = 1000;
    const std::uint64_t count              = num_schedules(num_usual);
    if (!testing::Test::HasFailure() && count >= enough_to_tell) {
        EXPECT_GT(static_cast<double>(number), in_each * static_cast<double>(count)) << fault;
    }
}

} // namespace ucxl::test
