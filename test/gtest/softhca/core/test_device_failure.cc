// A device that fails for good, and features that a firmware may refuse.
#include "commander.h"
#include "connected_pair.h"
#include "umr_request_maker.h"

#include "softhca/core/arena/device_failure.h"
#include "softhca/core/keys/key_work.h"
#include "softhca/core/queues/connection.h"

namespace ucxl::softhca::test
{

namespace
{

class device_failure : public connected_pair
{
protected:
    void plan(const fault_rule& rule) { machine.memory().faults.rules[0] = rule; }

    void refuse(refusable feature)
    {
        plan({.kind = fault_kind::refuse, .opcode = std::to_underlying(feature), .times = UINT64_MAX});
    }

    // An atomic add at `address` of a key of the far side. The queue pairs survive a refusal.
    polled add(std::uint32_t key, std::uint64_t address)
    {
        return only_one(work_request(wqe_opcode::atomic_fa)
                            .remote(address, key)
                            .fetch_add(5)
                            .data(source_key, address_of(source), 8)
                            .signaled());
    }

    // The same for a write of 8 bytes to the begin of a key.
    polled write_to(std::uint32_t key)
    {
        return only_one(
            work_request(wqe_opcode::rdma_write).remote(0, key).data(source_key, address_of(source), 8).signaled());
    }

    polled only_one(const work_request& request)
    {
        a.post(request);
        a.run();
        const polled found = only(a_sends);
        a.record().state   = qp_state::rts;
        b.record().state   = qp_state::rts;
        return found;
    }

    environment near_side() { return {machine.memory(), near, near.id()}; }
};

TEST_F(device_failure, executes_and_completes_nothing_from_that_request_on)
{
    plan({.kind = fault_kind::fatal, .first = 2});
    a.post(write(0, 8));
    a.post(write(8, 8));
    a.post(write(16, 8));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
    EXPECT_FALSE(arrived(8, 0, 8));
    EXPECT_TRUE(is_dead(machine.memory(), a.record().owner));
    EXPECT_FALSE(a.run());
    EXPECT_FALSE(b.run());
    EXPECT_FALSE(a_sends.poll().has_value());
}

TEST(device_failures, refuse_commands_but_those_that_end_something_and_tell_who_has_the_device_open)
{
    test_machine machine{{.devices = 2}};
    commander first(machine.start(), 0, 1);
    commander second(machine.start(), 1, 1);
    for (commander* const one : {&first, &second}) {
        const function_id function = one == &first ? 0 : 1;
        EXPECT_NE(one->process().device().add_channel(function, {.channel = 5, .value = 1}, true), 0u);
        EXPECT_NE(one->process().device().add_channel(function, {.channel = 6, .value = 1}, false), 0u);
    }
    const std::uint32_t pd = first.alloc_pd();
    environment device{machine.memory(), first.process(), first.process().id()};
    change_device(device, {.kind = change_kind::fatal, .function = 0});
    ASSERT_EQ(machine.notifications.size(), 1u);
    EXPECT_EQ(machine.notifications[0].client, first.process().id());
    EXPECT_EQ(machine.notifications[0].type, std::to_underlying(prm::event_type::local_catastrophic));
    EXPECT_EQ(first.plain(prm::command::alloc_pd, 0), prm::command_status::internal_error);
    EXPECT_EQ(first.plain(prm::command::dealloc_pd, pd), prm::command_status::ok);
    EXPECT_NE(second.alloc_pd(), 0u);
}

TEST_F(device_failure, sends_no_answer_to_peers)
{
    // A connection that looks the same to the sender, but on a working device.
    environment device = near_side();
    EXPECT_NE(find_peer(machine.memory(), a.record(), a.number), nullptr);
    change_device(device, {.kind = change_kind::fatal, .function = 0});
    EXPECT_EQ(find_peer(machine.memory(), a.record(), a.number), nullptr);
}

TEST_F(device_failure, refusals_of_a_firmware_are_those_asked_for)
{
    const std::uint32_t list = make.empty(prm::mkey_access_mode::klm, 8);
    qp_record qp;
    qp.pd          = make.pd;
    const auto umr = [&](const umr_request_maker& request) {
        environment device = near_side();
        return execute_umr(device, qp, 0x123, request.bytes());
    };
    const auto starts_at = [&](std::uint64_t address) {
        return umr(umr_request_maker(list, 0x123)
                       .free(false)
                       .start(address)
                       .len(8)
                       .entries({klm(8, source_key, address_of(source))}));
    };
    const auto repeats = [&] {
        return umr(umr_request_maker(list, 0x123)
                       .free(false)
                       .len(16)
                       .entries({repeat_header(8, 2, 1), repeat_entry(64, 8, source_key, address_of(source))}));
    };
    EXPECT_EQ(starts_at(4096), no_syndrome);
    refuse(refusable::umr_start_addr);
    EXPECT_EQ(starts_at(8192), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(starts_at(4096), no_syndrome) << "it stays where it is";
    EXPECT_EQ(repeats(), no_syndrome);
    refuse(refusable::umr_repeat_block);
    EXPECT_EQ(repeats(), cqe_syndrome::memory_window_bind);
    EXPECT_EQ(starts_at(8192), no_syndrome);
    refuse(refusable::umr_atomic_right);
    EXPECT_EQ(repeats(), no_syndrome) << "it names no right";
    EXPECT_EQ(umr(umr_request_maker(list, 0x123).free(false).access(true, true, true, true)),
              cqe_syndrome::memory_window_bind);
}

TEST_F(device_failure, atomics_through_entries_are_refused_where_asked_for)
{
    const std::uint32_t list = make.list({klm(16, target_key, address_of(target))});
    EXPECT_FALSE(add(list, 8).failed());
    refuse(refusable::indirect_atomic);
    EXPECT_FALSE(add(target_key, address_of(target)).failed());
    EXPECT_EQ(add(list, 8).syndrome(), cqe_syndrome::remote_access);
}

TEST_F(device_failure, what_keys_over_keys_do_is_refused_where_asked_for)
{
    const std::uint32_t list   = make.list({klm(16, target_key, address_of(target))});
    const std::uint32_t nested = make.list({klm(16, list, 0)});
    EXPECT_FALSE(add(nested, 8).failed());
    refuse(refusable::nested_atomic);
    EXPECT_FALSE(add(list, 8).failed());
    EXPECT_EQ(add(nested, 8).syndrome(), cqe_syndrome::remote_access);
    EXPECT_FALSE(write_to(nested).failed());
}

TEST_F(device_failure, repeat_blocks_below_a_key_are_refused_where_asked_for)
{
    const std::uint32_t block =
        make.list({repeat_header(8, 2, 1), repeat_entry(64, 8, target_key, address_of(target))});
    const std::uint32_t over = make.list({klm(16, block, 0)});
    EXPECT_FALSE(write_to(over).failed());
    refuse(refusable::nested_repeat_block);
    EXPECT_FALSE(write_to(block).failed());
    EXPECT_EQ(write_to(over).syndrome(), cqe_syndrome::remote_access);
}

TEST_F(device_failure, keys_by_local_rights_two_levels_down_are_refused_where_asked_for)
{
    const std::uint32_t third       = make.list({klm(16, target_key, address_of(target))});
    const std::uint32_t second      = make.list({klm(16, third, 0)});
    const std::uint32_t first       = make.list({klm(16, second, 0)});
    make.record(third).remote_write = false;
    EXPECT_FALSE(write_to(first).failed());
    refuse(refusable::deep_local_nested);
    EXPECT_EQ(write_to(first).syndrome(), cqe_syndrome::remote_access);
    EXPECT_FALSE(write_to(make.list({klm(16, third, 0)})).failed());
}

TEST_F(device_failure, atomics_on_a_word_that_is_split_or_misaligned_in_memory_are_refused)
{
    const std::uint64_t memory = address_of(target);
    const std::uint32_t list =
        make.list({klm(12, target_key, memory), klm(12, target_key, memory + 64), klm(8, target_key, memory + 128)});
    EXPECT_FALSE(add(list, 0).failed());
    EXPECT_EQ(add(list, 8).syndrome(), cqe_syndrome::remote_invalid_request) << "four bytes here, four there";
    EXPECT_EQ(add(list, 16).syndrome(), cqe_syndrome::remote_invalid_request) << "four bytes behind a boundary";
    EXPECT_FALSE(add(list, 24).failed());
}

} // namespace

} // namespace ucxl::softhca::test
