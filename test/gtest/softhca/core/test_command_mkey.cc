// Commands on memory keys.
#include "commander.h"

#include <gtest/gtest.h>

#include "softhca/core/arena/limits.h"
#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;
using prm::mkey_access_mode;

class command_mkey : public ::testing::Test
{
protected:
    mkey_record& record(std::uint32_t key) { return machine.memory().mkeys.records[key >> 8]; }

    access_fault use(std::uint32_t by_pd, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                     right needed = right::remote_write)
    {
        environment all{machine.memory(), device.process(), device.process().id()};
        return check_access(all, {device.function(), by_pd, 0}, key, address, length, needed);
    }

    std::uint32_t index_of_answer() { return device.out<prm::create_mkey_out>().get(prm::create_mkey_out::mkey_index); }

    test_machine machine{{.devices = 2, .functions_per_device = 2}};
    commander device{machine.start(), 0, 1};
    std::uint32_t pd = device.alloc_pd();
};

std::uint64_t address_of(std::span<std::byte> memory)
{
    return reinterpret_cast<std::uint64_t>(memory.data());
}

TEST_F(command_mkey, that_its_process_leaves_is_counted_unless_it_was_killed)
{
    commander other{machine.start(), 0, 1};
    commander dying{machine.start(), 0, 1};
    for (commander* const each : {&device, &other, &dying}) {
        const std::uint32_t domain = each->alloc_pd();
        each->create_key(domain, each->process().allocate(64));
        const std::uint32_t key = each->create_key(domain, each->process().allocate(64));
        EXPECT_EQ(each->plain(command::destroy_mkey, key >> 8), command_status::ok);
    }
    dying.process().kill();
    other.process().stop();
    machine.start();
    EXPECT_EQ(machine.memory().counts.keys_left, 1u);
    EXPECT_EQ(machine.memory().counts.keys_live, 1u);
}

TEST_F(command_mkey, over_others_for_atomics_is_aligned_and_over_a_bound_key_of_strict_order)
{
    const auto memory         = device.process().allocate(4096);
    const std::uint32_t below = device.create_key(pd, memory);
    const auto create         = [&](std::uint64_t start, std::uint64_t length, bool atomic) {
        translation_entry entry{};
        const prm::view<prm::ksm> only(entry);
        only.put(prm::ksm::mkey, below);
        auto input         = device.klm_input(pd, entry, 4);
        const auto context = (*input).at(prm::create_mkey_in::memory_key);
        prm::set_access_mode(context, prm::mkey_access_mode::ksm);
        context.put(prm::mkc::a, atomic);
        context.put(prm::mkc::start_addr, start);
        context.put(prm::mkc::len, length);
        context.put<12U>(prm::mkc::log_entity_size);
        return device.send(input);
    };
    EXPECT_EQ(create(0x1000, 4096, true), prm::command_status::ok);
    EXPECT_EQ(create(0x1004, 4088, true), prm::command_status::bad_parameter);
    EXPECT_EQ(create(0x1000, 4092, true), prm::command_status::bad_parameter);
    EXPECT_EQ(create(0x1004, 4092, false), prm::command_status::ok);
    record(below).relaxed_writes = true;
    EXPECT_EQ(create(0x1000, 4096, true), prm::command_status::bad_parameter);
    record(below).relaxed_writes = false;
    record(below).free           = true;
    EXPECT_EQ(create(0x1000, 4096, true), prm::command_status::bad_parameter);
    EXPECT_EQ(create(0x1000, 4096, false), prm::command_status::ok);
    record(below).free                      = false;
    machine.memory().card.fixed_buffer_size = false;
    EXPECT_EQ(create(0x1000, 4096, false), prm::command_status::bad_parameter) << "no keys of equal entries";
}

TEST_F(command_mkey, of_memory_reaches_that_memory_under_its_variant)
{
    const auto memory       = device.process().allocate(1000);
    const std::uint32_t key = device.create_key(pd, memory, 0x5a);
    EXPECT_EQ(key & 0xff, 0x5au);
    EXPECT_EQ(use(pd, key, address_of(memory), 1000), access_fault::none);
    EXPECT_EQ(use(pd, key, address_of(memory), 1001), access_fault::outside);
    EXPECT_EQ(use(pd, key ^ 1, address_of(memory), 1), access_fault::no_such_key);
    EXPECT_EQ(use(device.alloc_pd(), key, address_of(memory), 1), access_fault::wrong_pd);
    EXPECT_EQ(device.plain(command::dealloc_pd, pd), command_status::bad_resource_state);
    EXPECT_EQ(device.process().device().destroy_umem(record(key).umem), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_mkey, key >> 8), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_mkey, key >> 8), command_status::bad_resource);
    EXPECT_EQ(use(pd, key, address_of(memory), 1), access_fault::no_such_key);
    EXPECT_EQ(device.plain(command::dealloc_pd, pd), command_status::ok);
}

template <typename Field, typename Value>
command_status with(commander& device, std::uint32_t pd, Field field, Value value)
{
    auto input = device.key_input(pd, device.process().allocate(4096));
    if constexpr (std::is_same_v<typename Field::owner_type, prm::mkc>) {
        EXPECT_TRUE((*input).at(prm::create_mkey_in::memory_key).set(field, value));
    } else {
        EXPECT_TRUE((*input).set(field, value));
    }
    return device.send(input);
}

TEST_F(command_mkey, is_checked_field_by_field)
{
    EXPECT_EQ(with(device, pd, prm::mkc::pd, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, pd, prm::mkc::len, std::uint64_t{4097}), command_status::bad_resource);
    EXPECT_EQ(with(device, pd, prm::mkc::len, std::uint64_t{0}), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::len, ~std::uint64_t{0}), command_status::bad_parameter) << "wraps";
    EXPECT_EQ(with(device, pd, prm::mkc::start_addr, ~std::uint64_t{0}), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::start_addr, std::uint64_t{0}), command_status::ok) << "zero-based";
    EXPECT_EQ(with(device, pd, prm::mkc::length64, true), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::bsf_en, true), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::crypto_en, 1U), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::access_mode_4_2, 1U), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::mkc::access_mode_1_0, 0U), command_status::bad_parameter) << "the kernel's";
    EXPECT_EQ(with(device, pd, prm::create_mkey_in::mkey_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::create_mkey_in::mkey_umem_id, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, pd, prm::create_mkey_in::mkey_umem_offset, std::uint64_t{1}), command_status::bad_resource);
    EXPECT_EQ(with(device, pd, prm::create_mkey_in::input_mkey_index, 9U), command_status::bad_parameter);
    EXPECT_EQ(with(device, pd, prm::create_mkey_in::bsf_octword_actual_size, 4U), command_status::bad_parameter);
    EXPECT_EQ(machine.memory().mkeys.live, 1u);
}

TEST_F(command_mkey, of_memory_for_reading_gives_no_right_to_write)
{
    auto input = device.key_input(pd, device.process().allocate(64));
    (*input).put(prm::create_mkey_in::mkey_umem_id, device.umem(64, 0).umem);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    const auto context = (*input).at(prm::create_mkey_in::memory_key);
    context.put<false>(prm::mkc::lw);
    context.put<false>(prm::mkc::rw);
    EXPECT_EQ(device.send(input), command_status::bad_parameter) << "atomics write, too";
    context.put<false>(prm::mkc::a);
    EXPECT_EQ(device.send(input), command_status::ok);
}

std::vector<std::byte> klm_entries(std::initializer_list<std::array<std::uint64_t, 3>> list)
{
    std::vector<std::byte> all;
    for (const auto& [length, key, address] : list) {
        prm::storage<prm::klm> one;
        EXPECT_TRUE((*one).set(prm::klm::byte_count, length));
        EXPECT_TRUE((*one).set(prm::klm::mkey, key));
        (*one).put(prm::klm::address, address);
        all.insert(all.end(), one.bytes.begin(), one.bytes.end());
    }
    return all;
}

TEST_F(command_mkey, of_entries_reaches_what_they_name)
{
    const auto memory       = device.process().allocate(4096);
    const std::uint32_t key = device.create_key(pd, memory);
    const auto entries      = klm_entries({{100, key, address_of(memory)}, {50, key, address_of(memory) + 1000}});
    auto input              = device.klm_input(pd, entries, 4);
    const auto context      = (*input).at(prm::create_mkey_in::memory_key);
    context.put<std::uint64_t{150}>(prm::mkc::len);
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t list = index_of_answer() << 8;
    EXPECT_EQ(record(list).entries_room, 4u);
    EXPECT_EQ(record(list).entries_used, 2u);
    EXPECT_EQ(use(pd, list, 0, 150, right::local_read), access_fault::none);
    EXPECT_EQ(use(pd, list, 0, 151, right::local_read), access_fault::outside);
    EXPECT_EQ(use(pd, list, 0, 150, right::local_write), access_fault::forbidden);
    EXPECT_EQ(device.plain(command::destroy_mkey, list >> 8), command_status::ok);
}

TEST_F(command_mkey, of_entries_is_checked_against_mailbox_and_limit)
{
    const auto entries = klm_entries({{100, 0x100, 0}, {100, 0x100, 0}});
    auto input         = device.klm_input(pd, entries, 2);
    (*input).put<3>(prm::create_mkey_in::translations_octword_actual_size);
    EXPECT_EQ(device.send(input), command_status::bad_input_length);
    (*input).put<0xffffffffU>(prm::create_mkey_in::translations_octword_actual_size);
    EXPECT_EQ(device.send(input), command_status::limit_exceeded);
    (*input).put<0>(prm::create_mkey_in::translations_octword_actual_size);
    EXPECT_EQ(device.send(input), command_status::bad_parameter) << "in use without entries";
    (*input).put<2>(prm::create_mkey_in::translations_octword_actual_size);
    (*input).at(prm::create_mkey_in::memory_key).put<65537>(prm::mkc::translations_octword_size);
    EXPECT_EQ(device.send(input), command_status::limit_exceeded);
    (*input).at(prm::create_mkey_in::memory_key).put<65536>(prm::mkc::translations_octword_size);
    EXPECT_EQ(device.send(input), command_status::ok);
}

TEST_F(command_mkey, that_is_free_cannot_be_used_before_it_is_bound)
{
    auto input = device.klm_input(pd, {}, 16);
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t key = index_of_answer() << 8;
    EXPECT_EQ(use(pd, key, 0, 1, right::local_read), access_fault::not_bound);
    EXPECT_EQ(record(key).entries_room, 16u);
    (*input).at(prm::create_mkey_in::memory_key).put<false>(prm::mkc::umr_en);
    EXPECT_EQ(device.send(input), command_status::bad_parameter) << "nothing could ever bind it";
}

TEST_F(command_mkey, gives_entries_back_when_it_ends)
{
    auto input = device.klm_input(pd, {}, 65536);
    for (int i = 0; i < 600; ++i) {
        ASSERT_EQ(device.send(input), command_status::ok) << i;
        ASSERT_EQ(device.plain(command::destroy_mkey, index_of_answer()), command_status::ok);
    }
}

TEST_F(command_mkey, entries_run_out_and_nothing_is_left_behind)
{
    auto input         = device.klm_input(pd, {}, 65536);
    std::uint32_t made = 0;
    command_status status;
    while ((status = device.send(input)) == command_status::ok) {
        ++made;
    }
    EXPECT_EQ(status, command_status::no_resources);
    EXPECT_EQ(made, machine.memory().mkeys.live);
    EXPECT_GE(made, 255u);
    EXPECT_EQ(machine.memory().pds.records[pd].users, made);
}

TEST_F(command_mkey, answers_queries)
{
    const auto memory       = device.process().allocate(256);
    const std::uint32_t key = device.create_key(pd, memory, 3);
    ASSERT_EQ(device.plain(command::query_mkey, key >> 8), command_status::ok);
    const auto context = device.out<prm::query_mkey_out>().at(prm::query_mkey_out::memory_key);
    EXPECT_EQ(prm::access_mode(context), mkey_access_mode::mtt);
    EXPECT_EQ(context.get(prm::mkc::start_addr), address_of(memory));
    EXPECT_EQ(context.get(prm::mkc::len), 256u);
    EXPECT_EQ(context.get(prm::mkc::mkey_7_0), 3);
    EXPECT_EQ(context.get(prm::mkc::pd), pd);
    EXPECT_TRUE(context.get(prm::mkc::a));
}

TEST_F(command_mkey, limit_of_keys_can_be_set_by_a_fault)
{
    fault_plan plan;
    plan.rules[0] = {.kind = fault_kind::key_limit, .amount = 2};
    test_machine small({.faults = plan});
    commander on(small.start(), 0, 1);
    const std::uint32_t own = on.alloc_pd();
    const auto memory       = on.process().allocate(64);
    on.create_key(own, memory);
    on.create_key(own, memory);
    auto input = on.key_input(own, memory);
    EXPECT_EQ(on.send(input), command_status::limit_exceeded);
    EXPECT_EQ(small.memory().counts.keys_live, 2u);
    EXPECT_EQ(small.memory().counts.keys_live_max, 2u);
}

TEST_F(command_mkey, keys_that_are_there_without_being_made)
{
    mailbox<prm::any_input> input{.bytes = std::vector<std::byte>(16)};
    (*input).put<command::query_special_contexts>(prm::any_input::opcode);
    ASSERT_EQ(device.send(input), command_status::ok);
    const auto out = device.out<prm::query_special_contexts_out>();
    EXPECT_EQ(out.get(prm::query_special_contexts_out::dump_fill_mkey), key_without_memory);
    EXPECT_EQ(out.get(prm::query_special_contexts_out::null_mkey), 0u);
    EXPECT_EQ(machine.memory().find_key(key_without_memory), nullptr) << "none that is made gets its number";
}

TEST_F(command_mkey, a_region_is_changed_in_its_place_or_not_at_all)
{
    fabric& fabric          = device.process().device();
    const auto before       = device.process().allocate(64);
    const auto after        = device.process().allocate(128);
    const std::uint32_t key = device.create_key(pd, before, 0x5a);
    auto input              = device.key_input(pd, after);
    const auto context      = (*input).at(prm::create_mkey_in::memory_key);
    EXPECT_EQ(fabric.replace_region(0, key + 1, input.bytes), command_status::bad_resource);
    EXPECT_EQ(fabric.replace_region(0, key + 0x100, input.bytes), command_status::bad_resource);
    EXPECT_EQ(fabric.replace_region(1, key, input.bytes), command_status::bad_resource);
    EXPECT_EQ(fabric.replace_region(0, key, std::span(input.bytes).first(20)), command_status::bad_parameter);
    context.put(prm::mkc::len, std::uint64_t{129});
    EXPECT_EQ(fabric.replace_region(0, key, input.bytes), command_status::bad_resource);
    EXPECT_EQ(use(pd, key, address_of(before), 64), access_fault::none);

    context.put(prm::mkc::len, std::uint64_t{128});
    ASSERT_EQ(fabric.replace_region(0, key, input.bytes), command_status::ok);
    EXPECT_EQ(use(pd, key, address_of(after), 128), access_fault::none);
    EXPECT_EQ(use(pd, key, address_of(before), 64), access_fault::outside);
    auto free_list = device.klm_input(pd, {}, 16);
    ASSERT_EQ(device.send(free_list), command_status::ok);
    EXPECT_EQ(fabric.replace_region(0, index_of_answer() << 8, input.bytes), command_status::bad_resource)
        << "not a region";
}

TEST_F(command_mkey, of_device_memory_is_zero_based_and_within_one_allocation)
{
    fabric& fabric    = device.process().device();
    const auto offset = fabric.alloc_memic(0, 100, 0);
    ASSERT_TRUE(offset.has_value());
    auto input         = device.key_input(pd, device.process().allocate(64));
    const auto context = (*input).at(prm::create_mkey_in::memory_key);
    prm::set_access_mode(context, mkey_access_mode::memic);
    context.put(prm::mkc::start_addr, *offset);
    context.put(prm::mkc::len, std::uint64_t{100});
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t key = index_of_answer() << 8;
    EXPECT_EQ(use(pd, key, 0, 100), access_fault::none);
    EXPECT_EQ(use(pd, key, 1, 100), access_fault::outside);
    EXPECT_EQ(fabric.free_memic(0, *offset), command_status::resource_busy);

    context.put(prm::mkc::len, std::uint64_t{0});
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t of_nothing = index_of_answer() << 8;
    EXPECT_EQ(use(pd, of_nothing, 0, 1), access_fault::outside);
    EXPECT_EQ(device.plain(command::destroy_mkey, of_nothing >> 8), command_status::ok);

    context.put(prm::mkc::len, std::uint64_t{memic_page_bytes + 1});
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    context.put(prm::mkc::len, std::uint64_t{64});
    context.put(prm::mkc::start_addr, std::uint64_t{memic_bytes});
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    commander other(machine.start(), 0, 1);
    auto theirs = input;
    (*theirs).at(prm::create_mkey_in::memory_key).put(prm::mkc::start_addr, *offset);
    EXPECT_TRUE((*theirs).at(prm::create_mkey_in::memory_key).set(prm::mkc::pd, other.alloc_pd()));
    EXPECT_EQ(other.send(theirs), command_status::bad_parameter) << "not its allocation";

    EXPECT_EQ(device.plain(command::destroy_mkey, key >> 8), command_status::ok);
    EXPECT_EQ(fabric.free_memic(0, *offset), command_status::ok);
    EXPECT_EQ(fabric.free_memic(0, *offset), command_status::bad_resource);
}

TEST_F(command_mkey, device_memory_runs_out_by_pages_and_comes_back)
{
    fabric& fabric = device.process().device();
    EXPECT_EQ(fabric.alloc_memic(0, 0, 0).error(), command_status::bad_parameter);
    EXPECT_EQ(fabric.alloc_memic(0, 1, 7).error(), command_status::bad_parameter);
    EXPECT_EQ(fabric.alloc_memic(0, memic_bytes + 1, 0).error(), command_status::no_resources);
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 0; i < memic_bytes / memic_page_bytes; ++i) {
        const auto offset = fabric.alloc_memic(i % 2, 8, 6);
        ASSERT_TRUE(offset.has_value());
        EXPECT_EQ(*offset % memic_page_bytes, 0u);
        offsets.push_back(*offset);
    }
    EXPECT_EQ(fabric.alloc_memic(0, 1, 0).error(), command_status::no_resources);
    EXPECT_TRUE(fabric.alloc_memic(2, 1, 0).has_value()) << "another device";
    EXPECT_EQ(machine.memory().counts.memic_used_max, memic_bytes + memic_page_bytes);
    EXPECT_EQ(fabric.free_memic(0, offsets[3]), command_status::bad_resource) << "of function 1";
    EXPECT_EQ(fabric.free_memic(1, offsets[3]), command_status::ok);
    EXPECT_EQ(fabric.free_memic(0, offsets[4]), command_status::ok);
    EXPECT_EQ(fabric.alloc_memic(0, 2 * memic_page_bytes, 0), offsets[3]);
    EXPECT_EQ(machine.memory().counts.memic_used, memic_bytes + memic_page_bytes);
}

} // namespace
} // namespace ucxl::softhca::test
