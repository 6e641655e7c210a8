// Keys that other functions of a device get access to, and their aliases there.
#include "commander.h"

#include <gtest/gtest.h>

#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;

std::uint64_t address_of(std::span<std::byte> memory)
{
    return reinterpret_cast<std::uint64_t>(memory.data());
}

class command_vhca : public ::testing::Test
{
protected:
    command_vhca() { token.fill(std::byte{0x42}); }

    access_fault use(commander& by, std::uint32_t by_pd, std::uint32_t used, std::uint64_t address,
                     std::uint64_t length)
    {
        environment all{machine.memory(), by.process(), by.process().id()};
        return check_access(all, {by.function(), by_pd, 0}, used, address, length, right::remote_write);
    }

    command_status open(std::uint32_t opened)
    {
        prm::storage<prm::allow_other_vhca_access_in> input;
        (*input).put<command::allow_other_vhca_access>(prm::allow_other_vhca_access_in::opcode);
        (*input).put<prm::object_type::mkey>(prm::allow_other_vhca_access_in::object_type_to_be_accessed);
        (*input).put(prm::allow_other_vhca_access_in::object_id_to_be_accessed, opened >> 8);
        std::ranges::copy(token, (*input).at(prm::allow_other_vhca_access_in::access_key).begin());
        return device.send(input.bytes);
    }

    prm::storage<prm::create_alias_object_in> alias_input(std::uint32_t target_key, std::uint16_t there,
                                                          std::uint32_t alias_pd)
    {
        prm::storage<prm::create_alias_object_in> input;
        const auto alias = (*input).at(prm::create_alias_object_in::alias);
        prm::view<prm::any_input>::over(input.bytes)->put<command::create_general_object>(prm::any_input::opcode);
        (*input).put<prm::object_type::mkey>(prm::create_alias_object_in::obj_type);
        (*input).put<true>(prm::create_alias_object_in::alias_object);
        alias.put(prm::alias_context::vhca_id_to_be_accessed, there);
        alias.put(prm::alias_context::object_id_to_be_accessed, target_key >> 8);
        alias.put(prm::alias_context::metadata_1, alias_pd);
        std::ranges::copy(token, alias.at(prm::alias_context::access_key).begin());
        return input;
    }

    command_status make_alias(commander& by, std::uint32_t target_key, std::uint16_t there, std::uint32_t alias_pd)
    {
        return by.send(alias_input(target_key, there, alias_pd).bytes);
    }

    command_status object(commander& by, command opcode, std::uint32_t id)
    {
        prm::storage<prm::general_object_in> input;
        EXPECT_TRUE(prm::view<prm::any_input>::over(input.bytes)->set(prm::any_input::opcode, opcode));
        (*input).put<prm::object_type::mkey>(prm::general_object_in::obj_type);
        (*input).put(prm::general_object_in::obj_id, id);
        return by.send(input.bytes);
    }

    std::uint32_t alias_of_answer(commander& by)
    {
        return by.out<prm::general_object_out>().get(prm::general_object_out::obj_id) << 8;
    }

    test_machine machine{{.devices = 2, .functions_per_device = 2}};
    commander device{machine.start(), 0, 1};
    std::uint32_t pd = device.alloc_pd();
    std::array<std::byte, access_key_bytes> token;
    commander other{machine.start(), 1, 7}; // another function of the same device
    std::uint32_t other_pd      = other.alloc_pd();
    std::span<std::byte> memory = device.process().allocate(512);
    std::uint32_t key           = device.create_key(pd, memory);
    std::uint16_t vhca          = machine.memory().function_table[0].vhca_id;
};

TEST_F(command_vhca, an_alias_reaches_the_key_of_another_function_and_process)
{
    EXPECT_EQ(make_alias(other, key, vhca, other_pd), command_status::bad_parameter) << "not opened";
    ASSERT_EQ(open(key), command_status::ok);
    ASSERT_EQ(make_alias(other, key, vhca, other_pd), command_status::ok);
    const std::uint32_t alias = alias_of_answer(other);
    EXPECT_EQ(use(other, other_pd, alias, address_of(memory), 512), access_fault::none);
    EXPECT_EQ(use(other, other_pd, alias, address_of(memory), 513), access_fault::outside);
    EXPECT_EQ(use(other, other_pd, key, address_of(memory), 1), access_fault::no_such_key) << "not its own";
    EXPECT_EQ(other.plain(command::dealloc_pd, other_pd), command_status::bad_resource_state);

    EXPECT_EQ(object(other, command::query_general_object, alias >> 8), command_status::ok);
    const auto answer = other.out<prm::query_alias_object_out>().at(prm::query_alias_object_out::alias);
    EXPECT_EQ(answer.get(prm::alias_context::object_id_to_be_accessed), key >> 8);
    EXPECT_EQ(answer.get(prm::alias_context::status), 0);

    EXPECT_EQ(other.plain(command::destroy_mkey, alias >> 8), command_status::bad_resource) << "not so";
    EXPECT_EQ(object(device, command::destroy_general_object, alias >> 8), command_status::bad_resource);
    EXPECT_EQ(object(other, command::destroy_general_object, key >> 8), command_status::bad_resource);
    EXPECT_EQ(object(other, command::destroy_general_object, alias >> 8), command_status::ok);
    EXPECT_EQ(object(other, command::destroy_general_object, alias >> 8), command_status::bad_resource);
    EXPECT_EQ(other.plain(command::dealloc_pd, other_pd), command_status::ok);
}

TEST_F(command_vhca, an_alias_needs_the_token_the_function_and_the_device)
{
    ASSERT_EQ(open(key), command_status::ok);
    EXPECT_EQ(make_alias(other, key, static_cast<std::uint16_t>(vhca + 1), other_pd), command_status::bad_resource);
    EXPECT_EQ(make_alias(other, key, vhca, 0), command_status::bad_resource) << "protection domain";
    EXPECT_EQ(make_alias(other, 0xffffff00, vhca, other_pd), command_status::bad_resource);
    commander elsewhere(machine.start(), 2, 1);
    EXPECT_EQ(make_alias(elsewhere, key, vhca, elsewhere.alloc_pd()), command_status::bad_resource) << "other device";
    token[31] ^= std::byte{1};
    EXPECT_EQ(make_alias(other, key, vhca, other_pd), command_status::bad_parameter);
}

TEST_F(command_vhca, an_alias_ends_with_its_key)
{
    ASSERT_EQ(open(key), command_status::ok);
    ASSERT_EQ(make_alias(other, key, vhca, other_pd), command_status::ok);
    const std::uint32_t alias = alias_of_answer(other);
    ASSERT_EQ(device.plain(command::destroy_mkey, key >> 8), command_status::ok);
    // A later key with that index is another key, even with the same access key.
    machine.memory().mkeys.cursor = (key >> 8) - 1;
    const std::uint32_t next      = device.create_key(pd, memory);
    ASSERT_EQ(next >> 8, key >> 8);
    ASSERT_EQ(open(next), command_status::ok);
    EXPECT_EQ(use(other, other_pd, alias, address_of(memory), 1), access_fault::no_such_key);
    EXPECT_EQ(object(other, command::destroy_general_object, alias >> 8), command_status::ok);
}

TEST_F(command_vhca, an_alias_ends_with_the_process_of_its_key)
{
    ASSERT_EQ(open(key), command_status::ok);
    ASSERT_EQ(make_alias(other, key, vhca, other_pd), command_status::ok);
    const std::uint32_t alias = alias_of_answer(other);
    device.process().kill();
    machine.start();
    EXPECT_EQ(machine.memory().counts.clients_lost, 1u);
    EXPECT_EQ(use(other, other_pd, alias, address_of(memory), 1), access_fault::no_such_key);
}

TEST_F(command_vhca, an_alias_cannot_be_opened_or_aliased)
{
    ASSERT_EQ(open(key), command_status::ok);
    commander same(device.process(), 0, 1);
    ASSERT_EQ(make_alias(same, key, vhca, pd), command_status::ok) << "of its own function: allowed";
    const std::uint32_t alias = alias_of_answer(same);
    EXPECT_EQ(open(alias), command_status::bad_resource);
    EXPECT_EQ(make_alias(other, alias, vhca, other_pd), command_status::bad_resource);
}

TEST_F(command_vhca, other_general_objects_are_refused)
{
    auto input = alias_input(key, vhca, other_pd);
    (*input).put<false>(prm::create_alias_object_in::alias_object);
    EXPECT_EQ(other.send(input.bytes), command_status::bad_parameter);
    input = alias_input(key, vhca, other_pd);
    (*input).put<prm::object_type::reserved_qpn>(prm::create_alias_object_in::obj_type);
    EXPECT_EQ(other.send(input.bytes), command_status::bad_parameter);
    input = alias_input(key, vhca, other_pd);
    EXPECT_EQ(other.send(std::span<const std::byte>(input.bytes).first(79)), command_status::bad_input_length);
}

} // namespace
} // namespace ucxl::softhca::test
