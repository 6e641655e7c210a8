// How many orders of steps a test tries, and which.
//
// Example: try_orders("of_timers", [](std::uint64_t seed) { return one_order(seed).run(); });
#pragma once

#include "support/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace ucxl::test
{

// UCXL_TEST_SCHEDULES=1000000 for as many; otherwise `usual`, which takes about a second.
inline std::uint64_t num_schedules(std::uint64_t usual)
{
    const char* const wanted = std::getenv("UCXL_TEST_SCHEDULES");
    return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

// Tries the orders of the day. `try_one` takes the seed, and returns what is wrong, or null.
template <typename TryOne>
void try_orders(std::uint64_t usual, TryOne&& try_one)
{
    const std::uint64_t from = run_seed() * 1'000'000, count = num_schedules(usual);
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        const char* const wrong = try_one(seed);
        ASSERT_EQ(wrong, nullptr) << wrong << ", schedule " << seed;
    }
    testing::Test::RecordProperty("schedules", std::to_string(count));
}

} // namespace ucxl::test
