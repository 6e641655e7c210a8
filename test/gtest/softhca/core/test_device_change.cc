// Ports that go down and up, and cards that leave the bus and come back.
#include "commander.h"
#include "connected_pair.h"

#include "prm/port.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::event_type;
using prm::port_change;

constexpr std::int32_t async_channel = 5;
constexpr std::uint64_t timeout_ns   = 4096ULL << 14;

class device_change_test : public connected_pair
{
protected:
    device_change_test() { listen(near, async_channel); }

    static std::uint32_t listen(test_process& process, std::int32_t channel, bool device_events = true)
    {
        const auto made = process.device().add_channel(0, {.channel = channel, .value = 1}, device_events);
        EXPECT_NE(made, 0u);
        return made;
    }

    void plan(const fault_rule& rule) { machine.memory().faults.rules[0] = rule; }

    void change(change_kind kind, std::uint16_t lid = 0)
    {
        EXPECT_TRUE(near.device().change({.kind = kind, .function = 0, .lid = lid}));
    }

    // What came to a channel of a process, in order, since the last call.
    std::vector<std::uint32_t> told(const test_process& process, std::int32_t channel = async_channel)
    {
        std::vector<std::uint32_t> types;
        std::erase_if(machine.notifications, [&](const notification& one) {
            const bool mine = one.client == process.id() && one.route.channel == channel;
            if (mine) {
                types.push_back(one.type);
            }
            return mine;
        });
        return types;
    }

    void expect_only_new_contexts_work()
    {
        a.post(write(0, 8));
        EXPECT_FALSE(a.run()) << "made before";
        EXPECT_FALSE(a_sends.poll());
        EXPECT_TRUE(near.device().cut_off(0, 0));
        EXPECT_FALSE(near.device().cut_off(0, 1));
        commander device(near, 0, 1);
        EXPECT_NE(device.alloc_pd(), 0u);
    }

    static std::uint32_t port(port_change subtype) { return event_code(event_type::port_state_change, subtype); }
    static constexpr std::uint32_t fatal_event = event_code(event_type::local_catastrophic);

    using codes = std::vector<std::uint32_t>;
};

TEST_F(device_change_test, messages_wait_for_a_port_that_is_down_and_go_on_when_it_is_up)
{
    change(change_kind::port_down);
    EXPECT_EQ(told(near), codes{port(port_change::down)});
    a.post(write(0, 8));
    EXPECT_FALSE(a.run());
    machine.advance(timeout_ns * 2);
    EXPECT_FALSE(a_sends.poll()) << "retried";
    EXPECT_FALSE(arrived(0, 0, 8));
    change(change_kind::port_up);
    EXPECT_EQ(told(near), (codes{port(port_change::client_reregister), port(port_change::active)}));
    machine.time_ns += timeout_ns;
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 8));
}

TEST_F(device_change_test, a_port_that_stays_down_ends_connections)
{
    change(change_kind::port_down);
    a.post(write(0, 8));
    a.run();
    for (int i = 0; i < 4; ++i) {
        machine.time_ns += timeout_ns;
        a.run();
    }
    expect_error(a_sends.poll(), cqe_syndrome::transport_retry_exceeded);
    EXPECT_EQ(a.record().state, qp_state::error);
}

TEST_F(device_change_test, what_is_already_so_is_no_news)
{
    change(change_kind::port_up);
    change(change_kind::recover);
    EXPECT_EQ(told(near), codes{});
    change(change_kind::port_down);
    change(change_kind::port_down);
    EXPECT_EQ(told(near).size(), 1u);
    EXPECT_EQ(machine.memory().ports[0].link_downed, 1u);
    EXPECT_FALSE(near.device().change({.kind = change_kind::port_down, .function = 1})) << "there is no such function";
}

TEST_F(device_change_test, a_port_may_come_back_with_another_identifier)
{
    change(change_kind::port_down);
    (void)told(near);
    change(change_kind::port_up, 0x77);
    EXPECT_EQ(told(near),
              (codes{port(port_change::lid), port(port_change::client_reregister), port(port_change::active)}));
    EXPECT_EQ(machine.memory().function_table[0].lid, 0x77);
}

TEST_F(device_change_test, the_command_about_ports_says_what_is_so)
{
    commander device(near, 0, 1);
    const auto state = [&] {
        prm::storage<prm::query_hca_vport_context_in> input;
        (*input).put<prm::command::query_hca_vport_context>(prm::query_hca_vport_context_in::opcode);
        EXPECT_EQ(device.send(input.bytes), prm::command_status::ok);
        const auto context =
            device.out<prm::query_hca_vport_context_out>().at(prm::query_hca_vport_context_out::context);
        return std::pair(context.get(prm::hca_vport_context::vport_state),
                         unsigned{context.get(prm::hca_vport_context::port_physical_state)});
    };
    EXPECT_EQ(state(), std::pair(prm::vport_state::active, 5U));
    change(change_kind::port_down);
    EXPECT_EQ(state(), std::pair(prm::vport_state::down, 2U));
}

TEST_F(device_change_test, a_request_may_take_the_port_down_for_a_while)
{
    plan({.kind = fault_kind::port_down, .first = 2, .amount = timeout_ns * 5 / 2});
    a.post(write(0, 8));
    a.post(write(8, 8));
    a.run();
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(told(near), codes{port(port_change::down)});
    for (int i = 0; i < 3; ++i) {
        machine.time_ns += timeout_ns;
        near.device().progress();
        a.run();
    }
    EXPECT_EQ(told(near).back(), port(port_change::active));
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_TRUE(arrived(0, 0, 16));
    EXPECT_EQ(machine.memory().ports[0].local_ack_timeout_err, 3u);
}

TEST_F(device_change_test, a_removed_card_ends_channels_and_executes_nothing)
{
    listen(near, 6, false);
    change(change_kind::remove);
    EXPECT_EQ(told(near), (codes{fatal_event, channel_ends}));
    EXPECT_EQ(told(near, 6), codes{channel_ends});
    a.post(write(0, 8));
    EXPECT_FALSE(a.run());
    EXPECT_FALSE(a_sends.poll());
    EXPECT_TRUE(near.device().cut_off(0, 0));
    commander device(near, 0, 1);
    EXPECT_EQ(device.plain(prm::command::alloc_pd, 0), prm::command_status::internal_error);
}

TEST_F(device_change_test, a_card_that_is_back_works_for_new_contexts_only)
{
    change(change_kind::remove);
    change(change_kind::recover);
    expect_only_new_contexts_work();
}

TEST_F(device_change_test, a_function_that_is_reset_works_for_new_contexts_at_once)
{
    change(change_kind::reset);
    EXPECT_EQ(told(near), (codes{fatal_event, channel_ends}));
    expect_only_new_contexts_work();
    change(change_kind::remove);
    (void)told(near);
    change(change_kind::reset);
    EXPECT_EQ(told(near), codes{}) << "of a card that is not there";
}

TEST_F(device_change_test, recovery_from_a_failure_cuts_contexts_off_a_second_time)
{
    change(change_kind::fatal);
    EXPECT_EQ(told(near), codes{fatal_event});
    EXPECT_FALSE(near.device().cut_off(0, 0)) << "commands that destroy still go to the device";
    change(change_kind::recover);
    EXPECT_EQ(told(near), (codes{fatal_event, channel_ends}));
    EXPECT_TRUE(near.device().cut_off(0, 0));
    listen(near, 7);
    change(change_kind::fatal);
    EXPECT_EQ(told(near), codes{}) << "of a context that was cut off";
    EXPECT_EQ(told(near, 7), codes{fatal_event});
}

TEST_F(device_change_test, a_failed_device_lets_queue_pairs_go_to_error_and_reset_without_doing_it)
{
    commander device(near, 0, 0);
    change(change_kind::fatal);
    EXPECT_EQ(device.plain(prm::command::to_err_qp, a.number), prm::command_status::ok);
    EXPECT_EQ(a.record().state, qp_state::rts);
}

TEST_F(device_change_test, an_alias_does_not_reach_keys_of_a_removed_card)
{
    test_machine two({.devices = 1, .functions_per_device = 2});
    test_process& owner = two.start();
    key_maker keys(two.memory());
    const auto memory         = owner.allocate(4096);
    const std::uint32_t of    = keys.direct(owner.id(), memory);
    mkey_record& aimed        = *two.memory().find_key(of);
    aimed.shared_with_vhca    = true;
    const std::uint32_t alias = keys.direct(owner.id(), memory);
    mkey_record& made         = *two.memory().find_key(alias);
    made.backing              = mkey_backing::alias;
    made.owner.function       = 1;
    made.length64             = true;
    made.target_mkey          = of >> 8;
    made.target_vhca          = two.memory().function_table[0].vhca_id;
    environment device{two.memory(), owner, owner.id()};
    const key_user user{1, made.pd, 16};
    const auto check = [&] { return check_access(device, user, alias, address_of(memory), 8, right::local_read, 16); };
    EXPECT_EQ(check(), access_fault::none);
    two.memory().function_table[0].incarnation++;
    EXPECT_EQ(check(), access_fault::wrong_vhca);
}

TEST_F(device_change_test, changes_at_a_time_come_then_in_their_order)
{
    fabric_options options;
    options.now_ns          = 1'000'000'000;
    options.faults.rules[0] = {.kind = fault_kind::port_down, .amount = 500, .after_ns = 1000};
    options.faults.rules[1] = {.kind = fault_kind::wqe, .status = 4};
    test_machine timed(options);
    test_process& process = timed.start();
    listen(process, async_channel);
    EXPECT_EQ(process.woken_at_ns, 1'000'001'000u);
    EXPECT_EQ(timed.memory().faults.rules[0].kind, fault_kind::wqe) << "what has a time counts nothing";
    timed.advance(999);
    EXPECT_TRUE(timed.notifications.empty());
    timed.advance(1);
    ASSERT_EQ(timed.notifications.size(), 1u);
    EXPECT_EQ(timed.notifications[0].type, port(port_change::down));
    EXPECT_EQ(timed.memory().schedule.next_ns, 1'000'001'500u);
    timed.advance(10'000);
    EXPECT_EQ(timed.notifications.size(), 3u);
    EXPECT_TRUE(port_is_up(timed.memory(), 0));
    EXPECT_EQ(timed.memory().schedule.next_ns, 0u);
}

TEST_F(device_change_test, a_change_comes_at_its_time_although_the_process_was_called_before)
{
    EXPECT_TRUE(near.device().change({.kind = change_kind::port_down, .function = 0}, 1000));
    near.woken_at_ns = UINT64_MAX; // the call that was asked for came early, for something else
    near.device().progress();
    machine.advance(1000);
    EXPECT_EQ(told(near), codes{port(port_change::down)});
}

TEST_F(device_change_test, who_reads_the_end_of_a_channel_finds_its_context_dead)
{
    unsigned ends      = 0;
    near.when_notified = [&](std::uint32_t type) {
        if (type == channel_ends) {
            ++ends;
            EXPECT_TRUE(near.device().cut_off(0, 0));
        }
    };
    change(change_kind::remove);
    EXPECT_EQ(ends, 1u);
}

TEST_F(device_change_test, changes_come_late_rather_than_never)
{
    test_process& other = machine.start();
    EXPECT_TRUE(other.device().change({.kind = change_kind::port_down}, 1000));
    other.kill();
    machine.time_ns += 2000;
    commander(near, 0, 1).alloc_pd();
    EXPECT_EQ(told(near), codes{port(port_change::down)});
}

TEST_F(device_change_test, a_process_that_ends_leaves_no_channel)
{
    test_process& other = machine.start();
    const auto channel  = listen(other, 9);
    other.kill();
    machine.start().stop();
    EXPECT_EQ(machine.memory().channels.find(channel), nullptr);
    change(change_kind::port_down);
    EXPECT_EQ(told(other, 9), codes{});
    near.device().drop_channel(1);
    change(change_kind::port_up);
    EXPECT_EQ(told(near), codes{port(port_change::down)});
}

} // namespace

} // namespace ucxl::softhca::test
