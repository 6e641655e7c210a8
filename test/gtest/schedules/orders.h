// What tests of orders of steps have in common: how many they try, which, and what they found wrong.
//
// Example:
//     class one_order : public checked_order { explicit one_order(std::uint64_t seed); const char* run(); ... };
//     try_orders<one_order>(20'000, 0.5, "it is called seldom", [](const auto& order) { return order.num_calls(); });
#pragma once

#include "support/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace ucxl::test
{

// Keeps the first fault of an order.
class checked_order
{
protected:
    void note(const char* fault) { _fault = _fault == nullptr ? fault : _fault; }
    void require(bool is_right, const char* fault) { note(is_right ? nullptr : fault); }
    const char* fault() const { return _fault; }

private:
    const char* _fault = nullptr;
};

// Tries the orders of the day: UCXL_TEST_SCHEDULES=1000000 for as many, otherwise `num_usual`. run() of an order
// returns what is wrong, or null; the number of a schedule that fails is a UCXL_TEST_SEED that begins with it. The
// orders were interesting if `num_in` counts more than `in_each` of something on average.
//
// The first order of a process takes steps of its own, such as those of static objects that are made. So one comes
// before all others, and a schedule does the same whether it is the first one or a later one. Not so those of windows
// (gtest_schedules_windows): tables of the library keep what earlier orders left there, so to find one again takes the
// whole run, with the seed that it printed.
template <typename Order, typename NumIn>
void try_orders(std::uint64_t num_usual, double in_each, const char* fault_if_seldom, NumIn&& num_in)
{
    const char* const wanted  = std::getenv("UCXL_TEST_SCHEDULES");
    const std::uint64_t count = wanted == nullptr ? num_usual : std::strtoull(wanted, nullptr, 10);
    const std::uint64_t from  = run_seed();
    std::uint64_t number      = 0;
    const char* const first   = std::make_unique<Order>(from)->run();
    ASSERT_EQ(first, nullptr) << first << ", schedule " << from << ", as the first one of a process";
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        const auto order        = std::make_unique<Order>(seed);
        const char* const wrong = order->run();
        ASSERT_EQ(wrong, nullptr) << wrong << ", schedule " << seed;
        number += static_cast<std::uint64_t>(num_in(*order));
    }
    constexpr std::uint64_t enough_to_tell = 1000;
    if (count >= enough_to_tell) {
        EXPECT_GT(static_cast<double>(number), in_each * static_cast<double>(count)) << fault_if_seldom;
    }
    testing::Test::RecordProperty("schedules", std::to_string(count));
}

} // namespace ucxl::test
