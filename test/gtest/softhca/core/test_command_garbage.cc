// Garbage in mailboxes, queues and doorbells, and processes that die at any moment: the records stay consistent.
#include "command_script.h"
#include "commander.h"
#include "invariants.h"
#include "support/random.h"

#include <gtest/gtest.h>

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;
using ucxl::test::run_seed;

std::vector<std::byte> random_bytes(ucxl::test::random& from, std::size_t count)
{
    std::vector<std::byte> bytes(count);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(from.next()); });
    return bytes;
}

TEST(command_garbage, random_mailboxes_of_every_opcode_are_answered)
{
    ucxl::test::random from(run_seed());
    SCOPED_TRACE(run_seed());
    test_machine machine({.devices = 1, .functions_per_device = 2});
    commander device(machine.start(), 0, 1);
    const std::uint32_t qpn = device.create_qp();
    const std::uint32_t cqn = device.create_cq();
    for (const prm::named_value& opcode : prm::value_names<command>::values) {
        for (int i = 0; i < 40; ++i) {
            auto input = random_bytes(from, from.below(700));
            if (input.size() >= 2) {
                input[0] = static_cast<std::byte>(opcode.value >> 8);
                input[1] = static_cast<std::byte>(opcode.value);
            }
            if (input.size() >= 12 && from.one_in(2)) {
                input[11] = static_cast<std::byte>(from.one_in(2) ? qpn : cqn); // most commands name an object there
                input[9] = input[10] = std::byte{0};
            }
            const command_status status = device.send(input, 16 + from.below(4200));
            EXPECT_EQ(static_cast<std::uint8_t>(status), std::to_integer<std::uint8_t>(device.out_bytes()[0]));
        }
    }
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST(command_garbage, one_byte_changed_in_good_commands_is_answered)
{
    ucxl::test::random from(run_seed());
    SCOPED_TRACE(run_seed());
    test_machine machine;
    commander device(machine.start(), 0, 1);
    const std::uint32_t pd                         = device.alloc_pd();
    const std::vector<std::vector<std::byte>> good = {
        device.cq_input().bytes, device.rmp_input().bytes, device.qp_input().bytes,
        device.key_input(pd, device.process().allocate(64)).bytes, device.klm_input(pd, {}, 8).bytes};
    for (const auto& mailbox : good) {
        ASSERT_EQ(device.send(mailbox), command_status::ok);
        for (std::size_t at = 0; at < mailbox.size(); ++at) {
            auto changed = mailbox;
            changed[at] ^= static_cast<std::byte>(1 + from.below(255));
            device.send(changed);
        }
    }
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST(command_garbage, random_scripts_leave_everything_in_order)
{
    ucxl::test::random from(run_seed());
    unsigned commands  = 0;
    unsigned succeeded = 0;
    for (int i = 0; i < 300; ++i) {
        SCOPED_TRACE(testing::Message() << "seed " << run_seed() << ", script " << i);
        const script_result result = run_command_script(random_bytes(from, 200 + from.below(1500)));
        ASSERT_EQ(result.wrong, "");
        commands += result.commands;
        succeeded += result.succeeded;
    }
    EXPECT_GT(succeeded, commands / 10) << "scripts that do nothing test nothing";
}

} // namespace
} // namespace ucxl::softhca::test
