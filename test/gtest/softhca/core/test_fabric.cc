// The fabric as a whole: its memory, and processes that attach and leave.
#include "test_host.h"

#include <gtest/gtest.h>

namespace ucxl::softhca::test
{
namespace
{

std::string format_error(const fabric_options& options)
{
    test_machine machine;
    const auto done = fabric::format(machine.bytes(), options);
    return done ? "" : done.error();
}

TEST(fabric, refuses_options_beyond_its_limits_and_names_them)
{
    EXPECT_EQ(format_error({.devices = 1, .functions_per_device = 32}), "");
    EXPECT_NE(format_error({.devices = 0}).find("devices"), std::string::npos);
    EXPECT_NE(format_error({.devices = 9}).find("devices"), std::string::npos);
    EXPECT_NE(format_error({.devices = 1, .functions_per_device = 0}).find("functions"), std::string::npos);
    EXPECT_NE(format_error({.devices = 2, .functions_per_device = 17}).find("functions"), std::string::npos);
    fabric_options timed{.devices = 1, .functions_per_device = 2};
    timed.faults.rules[0] = {.kind = fault_kind::port_down, .after_ns = 1, .function = 1};
    EXPECT_EQ(format_error(timed), "");
    timed.faults.rules[0].function = 2;
    EXPECT_EQ(format_error(timed), "fault: there is no mlx5_2, mlx5_1 is the last one");
}

TEST(fabric, refuses_memory_that_is_no_fabric)
{
    test_machine machine;
    test_process& process = machine.start();
    EXPECT_FALSE(fabric::attach(machine.bytes().first(4096), process, {}).has_value());
    EXPECT_FALSE(fabric::attach(machine.bytes().subspan(8), process, {}).has_value());
    machine.memory().magic ^= 1;
    EXPECT_FALSE(fabric::attach(machine.bytes(), process, {}).has_value());
    machine.memory().magic ^= 1;
}

TEST(fabric, gives_every_function_names_of_its_own)
{
    test_machine machine({.devices = 2, .functions_per_device = 3});
    fabric& device = machine.start().device();
    ASSERT_EQ(device.functions(), 6u);
    for (function_id i = 0; i < 6; ++i) {
        EXPECT_EQ(device.function(i).device, i / 3u);
        for (function_id j = 0; j < i; ++j) {
            EXPECT_NE(device.function(i).lid, device.function(j).lid);
            EXPECT_NE(device.function(i).vhca_id, device.function(j).vhca_id);
            EXPECT_NE(device.function(i).node_guid, device.function(j).node_guid);
            EXPECT_NE(device.function(i).port_guid, device.function(j).port_guid);
            EXPECT_EQ(device.function(i).image_guid == device.function(j).image_guid, i / 3u == j / 3u);
        }
    }
    EXPECT_EQ(device.function(6).owner.life, life::free);
}

TEST(fabric, takes_as_many_processes_as_its_table_and_again_when_they_ended)
{
    test_machine machine;
    std::vector<test_process*> processes;
    for (std::size_t i = 1; i < max_clients; ++i) {
        processes.push_back(&machine.start());
    }
    EXPECT_THROW(machine.start(), std::runtime_error);
    processes[3]->stop();
    test_process& next = machine.start();
    EXPECT_EQ(next.id(), 4);
    EXPECT_EQ(machine.memory().clients[4].generation, 2u);
}

TEST(fabric, finds_dead_processes_when_another_comes)
{
    test_machine machine;
    machine.start();
    const client_id dead = machine.start().id();
    machine.find(dead)->kill();
    EXPECT_EQ(machine.start().id(), dead);
    EXPECT_EQ(machine.memory().counts.clients_lost, 1u);
}

} // namespace
} // namespace ucxl::softhca::test
