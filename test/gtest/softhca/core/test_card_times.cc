// --times: the sender of a command spends the time, and none without the option.
#include "commander.h"

#include <gtest/gtest.h>

#include "softhca/core/arena/cost.h"

namespace ucxl::softhca::test
{
namespace
{

using prm::command;

double spent_on(commander& by, auto&& work)
{
    const std::uint64_t before = by.process().spent_ns;
    work();
    return static_cast<double>(by.process().spent_ns - before);
}

TEST(card_times_option, none_adds_nothing)
{
    test_machine machine;
    commander device(machine.start(), 0, 1);
    device.create_qp();
    device.create_key(device.alloc_pd(), device.process().allocate(4096));
    EXPECT_EQ(device.process().spent_ns, 0u);
}

TEST(card_times_option, bf3_has_the_published_costs_of_keys)
{
    test_machine machine({.functions_per_device = 2, .costs = card_times::bf3});
    commander device(machine.start(), 0, 1);
    const std::uint32_t pd = device.alloc_pd();
    const auto memory      = device.process().allocate(16384);
    auto umr               = device.klm_input(pd, {}, 4);
    EXPECT_NEAR(spent_on(device, [&] { device.send(umr); }), 217'000, 2'000);
    const std::uint32_t index = device.out<prm::create_mkey_out>().get(prm::create_mkey_out::mkey_index);
    EXPECT_NEAR(spent_on(device, [&] { device.plain(command::destroy_mkey, index); }), 151'000, 1'000);
    // DEVX registers the memory first, then creates the key.
    EXPECT_NEAR(spent_on(device, [&] { device.create_key(pd, memory); }), 165'139 + 159'000, 1'000);
}

TEST(card_times_option, registration_costs_by_length)
{
    constexpr std::uint64_t mib = 1 << 20;
    EXPECT_EQ(registration_cost(card_times::bf3, 1), 10'125u);
    EXPECT_EQ(registration_cost(card_times::bf3, mib), 22'296u);
    EXPECT_EQ(registration_cost(card_times::bf3, 64 * mib), 232'007u);
    EXPECT_EQ(registration_cost(card_times::bf3, 1024 * mib), 5'823'605u);
    EXPECT_EQ(deregistration_cost(card_times::bf3, 1024 * mib), 2'585'700u);
    EXPECT_EQ(registration_cost(card_times::none, mib), 0u);
    for (const card_times costs : {card_times::cx6, card_times::bf3}) {
        std::uint64_t last = 0;
        for (std::uint64_t length = 1; length < std::uint64_t{1} << 62; length *= 3) {
            const std::uint64_t cost = registration_cost(costs, length);
            EXPECT_GE(cost, last);
            EXPECT_LT(cost, 70'000'000'000u) << "a claim of length costs no hours";
            last = cost;
        }
    }
}

TEST(card_times_option, the_kernels_registration_is_one_cost)
{
    test_machine machine({.costs = card_times::bf3});
    commander context(machine.start(), 0, 1);
    commander kernel(context.process(), 0, 0);
    const std::uint32_t pd = context.alloc_pd();
    const auto memory      = context.process().allocate(16384);
    EXPECT_EQ(spent_on(kernel, [&] { kernel.create_key(pd, memory); }), 10'125.0);
}

} // namespace
} // namespace ucxl::softhca::test
