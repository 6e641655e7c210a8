// Processes killed at any instruction of a command, by a parent that single-steps them: the next holder of the lock
// finds a consistent fabric.
#include "commander.h"
#include "invariants.h"
#include "stepped_process.h"
#include "support/random.h"

#include <gtest/gtest.h>

#include <functional>

namespace ucxl::softhca::test
{
namespace
{

using prm::command;

struct action {
    const char* name;
    int num_trials; // fewer when there are many steps
    // Prepares the action, and returns the part that is interrupted.
    std::function<std::function<void()>(commander&)> prepare;
};

std::vector<action> actions()
{
    return {
        {"alloc_pd", 20, [](commander& by) { return [&by] { by.plain(command::alloc_pd, 0); }; }},
        {"create_umem", 20,
         [](commander& by) {
             const auto address = reinterpret_cast<std::uint64_t>(by.process().allocate(64).data());
             return [&by, address] { (void)by.process().device().create_umem(0, 1, address, 64, 1); };
         }},
        {"create_cq", 20,
         [](commander& by) {
             auto input = by.cq_input();
             return [&by, input]() { by.send(std::span<const std::byte>(input.bytes)); };
         }},
        {"create_qp", 20,
         [](commander& by) {
             auto input = by.qp_input({.srq = by.create_srq()});
             return [&by, input]() { by.send(std::span<const std::byte>(input.bytes)); };
         }},
        {"destroy_qp", 20,
         [](commander& by) {
             const std::uint32_t qpn = by.create_qp();
             return [&by, qpn] { by.plain(command::destroy_qp, qpn); };
         }},
        {"connect", 20,
         [](commander& by) {
             const std::uint32_t qpn = by.create_qp();
             return [&by, qpn] { by.connect(qpn, 1, qpn); };
         }},
        {"create_klm_key", 20,
         [](commander& by) {
             auto input = by.klm_input(by.alloc_pd(), {}, 7);
             return [&by, input]() { by.send(std::span<const std::byte>(input.bytes)); };
         }},
        {"destroy_klm_key", 20,
         [](commander& by) {
             auto input = by.klm_input(by.alloc_pd(), {}, 9);
             by.send(input);
             const std::uint32_t index = by.out<prm::create_mkey_out>().get(prm::create_mkey_out::mkey_index);
             return [&by, index] { by.plain(command::destroy_mkey, index); };
         }},
        {"device_memory", 20,
         [](commander& by) {
             const auto first = by.process().device().alloc_memic(0, 5000, 0);
             return [&by, first] {
                 (void)by.process().device().alloc_memic(0, 100, 0);
                 (void)by.process().device().free_memic(0, *first);
             };
         }},
        {"release", 6,
         [](commander& by) {
             by.create_qp({.srq = by.create_srq()});
             by.create_key(by.alloc_pd(), by.process().allocate(64));
             auto input = by.klm_input(by.alloc_pd(), {}, 33);
             by.send(input);
             return [&by] { by.process().stop(); };
         }},
    };
}

// Runs `work` in a child that is killed after `steps` instructions under the lock. Returns how many it executed: fewer
// when it released the lock. Nothing when stepping is not allowed.
std::optional<std::uint64_t> run_stepped(test_process& process, const std::function<void()>& work, std::uint64_t steps)
{
    auto child = stepped_process::start(process, work);
    if (!child) {
        return std::nullopt;
    }
    std::uint64_t done = 0;
    while (done < steps && child->step()) {
        ++done;
    }
    return done;
}

class process_death : public ::testing::TestWithParam<std::size_t>
{
};

TEST_P(process_death, leaves_a_fabric_that_can_be_repaired)
{
    constexpr std::uint64_t no_limit = 3'000'000;
    const action step                = actions()[GetParam()];
    ucxl::test::random from(ucxl::test::run_seed());
    test_machine machine;
    commander survivor(machine.start(), 0, 1);
    survivor.create_qp();
    std::uint64_t whole = no_limit;
    unsigned with_lock  = 0;
    for (int i = 0; i < step.num_trials; ++i) {
        test_process& victim = machine.start();
        commander by(victim, 0, 1);
        const auto interrupted = step.prepare(by);
        const auto steps       = run_stepped(victim, interrupted, i == 0 ? no_limit : from.below(whole));
        if (!steps) {
            GTEST_SKIP() << "processes cannot be traced here";
        }
        whole = i == 0 ? *steps : whole;
        if (victim.has_lock()) {
            ++with_lock;
            victim.kill_with_lock();
        } else {
            victim.kill();
        }
        survivor.plain(command::alloc_pd, 0);
        const client_id reborn = machine.start().id();
        EXPECT_NE(reborn, 0);
        ASSERT_EQ(broken_invariants(machine.memory()), "")
            << step.name << ", seed " << ucxl::test::run_seed() << ", killed after " << *steps << " of " << whole;
        machine.find(reborn)->stop();
    }
    EXPECT_EQ(machine.memory().qps.live, 1u) << "what is left is the survivor's";
    EXPECT_GT(with_lock, 0u);
}

INSTANTIATE_TEST_SUITE_P(actions, process_death, ::testing::Range<std::size_t>(0, actions().size()),
                         [](const auto& test) { return std::string(actions()[test.param].name); });

} // namespace
} // namespace ucxl::softhca::test
