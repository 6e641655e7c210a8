// The commands of dynamic connections: targets, the states of initiators, and resetting a stream channel.
#include <gtest/gtest.h>

#include "commander.h"
#include "invariants.h"
#include "prm/eq.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::command;
using prm::command_status;
using prm::dct_state;
using prm::dctc;

class command_dct : public ::testing::Test
{
protected:
    prm::const_view<dctc> query(std::uint32_t dctn)
    {
        EXPECT_EQ(device.plain(command::query_dct, dctn), command_status::ok);
        return device.out<prm::query_dct_out>().at(prm::query_dct_out::dct_context);
    }

    template <typename Field, typename Value>
    command_status with(Field field, Value value)
    {
        auto input = device.dct_input();
        EXPECT_TRUE((*input).at(prm::create_dct_in::dct_context).set(field, value));
        return device.send(input);
    }

    // An initiator in the state RTS with 4 stream channels.
    std::uint32_t initiator()
    {
        auto input         = device.qp_input({.service = prm::qp_service::dci});
        const auto context = (*input).at(prm::create_qp_in::qpc);
        context.put<2>(prm::qpc::log_num_dci_stream_channels);
        context.put<1>(prm::qpc::log_num_dci_errored_streams);
        EXPECT_EQ(device.send(input), command_status::ok);
        const std::uint32_t qpn = device.out<prm::create_qp_out>().get(prm::create_qp_out::qpn);
        device.connect(qpn, 1, 0);
        return qpn;
    }

    command_status reset_stream(std::uint32_t qpn, std::uint16_t channel, std::uint64_t mask = 1)
    {
        mailbox<prm::modify_qp_ext_in> input;
        (*input).put<command::rts2rts_qp>(prm::modify_qp_ext_in::opcode);
        (*input).put<true>(prm::modify_qp_ext_in::qpc_ext);
        EXPECT_TRUE((*input).set(prm::modify_qp_ext_in::qpn, qpn));
        (*input).put(prm::modify_qp_ext_in::opt_param_mask_95_32, mask);
        (*input).at(prm::modify_qp_ext_in::extension).put(prm::qpc_ext::dci_stream_channel_id, channel);
        return device.send(input);
    }

    test_machine machine;
    commander device{machine.start(), 0, 1};
};

TEST_F(command_dct, targets_come_and_go)
{
    const std::uint32_t dctn = device.create_dct(0x123456789abcdef0);
    EXPECT_NE(dctn, 0u);
    EXPECT_EQ(broken_invariants(machine.memory()), "");
    const auto made = query(dctn);
    EXPECT_EQ(made.get(dctc::state), dct_state::active);
    EXPECT_EQ(made.get(dctc::dc_access_key), 0x123456789abcdef0u);
    EXPECT_EQ(made.get(dctc::mtu), prm::path_mtu::bytes_2048);
    EXPECT_TRUE(made.get(dctc::rre) && made.get(dctc::rwe) && !made.get(dctc::rae));
    EXPECT_EQ(device.plain(command::destroy_dct, dctn), command_status::bad_resource_state) << "not drained";
    EXPECT_EQ(device.plain(command::drain_dct, dctn), command_status::ok);
    EXPECT_EQ(query(dctn).get(dctc::state), dct_state::drained);
    EXPECT_EQ(device.plain(command::drain_dct, dctn), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_dct, dctn), command_status::ok);
    EXPECT_EQ(device.plain(command::query_dct, dctn), command_status::bad_resource);
    EXPECT_EQ(machine.memory().qps.live, 0u);
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST_F(command_dct, draining_is_told)
{
    const std::uint32_t dctn = device.create_dct();
    (void)device.process().device().route_queue_pair(dctn, {.channel = 9});
    EXPECT_EQ(device.plain(command::drain_dct, dctn), command_status::ok);
    ASSERT_EQ(machine.notifications.size(), 1u);
    EXPECT_EQ(machine.notifications[0].type, std::to_underlying(prm::event_type::dct_drained));
}

TEST_F(command_dct, violations_are_reported)
{
    const std::uint32_t dctn = device.create_dct();
    EXPECT_EQ(device.plain(command::arm_dct_for_key_violation, dctn), command_status::ok);
    qp_record& record = machine.memory().qps.records[dctn];
    EXPECT_TRUE(record.dc.armed);
    record.dc.violations = 5;
    EXPECT_EQ(query(dctn).get(dctc::dc_access_key_violation_count), 5u);
    EXPECT_EQ(device.plain(command::arm_dct_for_key_violation, dctn + 1), command_status::bad_resource);
}

TEST_F(command_dct, what_it_refers_to_stays)
{
    auto input               = device.dct_input();
    const auto context       = (*input).at(prm::create_dct_in::dct_context);
    const std::uint32_t pd   = context.get(dctc::pd);
    const std::uint32_t cqn  = context.get(dctc::cqn);
    const std::uint32_t srqn = context.get(dctc::srqn_xrqn);
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t dctn = device.out<prm::create_dct_out>().get(prm::create_dct_out::dctn);
    EXPECT_EQ(device.plain(command::dealloc_pd, pd), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_cq, cqn), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_rmp, srqn), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::drain_dct, dctn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_dct, dctn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_rmp, srqn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_cq, cqn), command_status::ok);
    EXPECT_EQ(device.plain(command::dealloc_pd, pd), command_status::ok);
}

TEST_F(command_dct, a_completion_held_back_is_written_before_the_target_ends)
{
    const std::uint32_t dctn = device.create_dct();
    cq_record& arrivals      = machine.memory().cqs.records[machine.memory().qps.records[dctn].receive_cq];
    arrivals.holds           = true; // as the adversarial order does
    EXPECT_EQ(device.plain(command::drain_dct, dctn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_dct, dctn), command_status::ok);
    EXPECT_FALSE(arrivals.holds);
    EXPECT_EQ(arrivals.producer, 1u);
}

TEST_F(command_dct, fields_that_are_refused)
{
    EXPECT_EQ(with(dctc::srqn_xrqn, 0u), command_status::bad_resource) << "a target needs a shared receive queue";
    EXPECT_EQ(with(dctc::srqn_xrqn, 0x777u), command_status::bad_resource);
    EXPECT_EQ(with(dctc::cqn, 0x777u), command_status::bad_resource);
    EXPECT_EQ(with(dctc::pd, 0x777u), command_status::bad_resource);
    EXPECT_EQ(with(dctc::mtu, prm::path_mtu::raw_ethernet), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::mtu, prm::path_mtu{}), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::port, 2u), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::port, 0u), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::pkey_index, 1u), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::my_addr_index, 1u), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::offload_type, 1u), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::rlkey, true), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::state, dct_state::drained), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::atomic_mode, prm::atomic_mode::up_to_16b), command_status::bad_parameter);
    EXPECT_EQ(with(dctc::atomic_mode, prm::atomic_mode::up_to_8b), command_status::ok);
    EXPECT_EQ(machine.memory().qps.live, 1u);
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST_F(command_dct, targets_and_queue_pairs_are_not_the_same)
{
    const std::uint32_t dctn = device.create_dct();
    const std::uint32_t qpn  = device.create_qp();
    for (const command opcode : {command::query_qp, command::to_err_qp, command::to_rst_qp, command::destroy_qp}) {
        EXPECT_EQ(device.plain(opcode, dctn), command_status::bad_resource) << prm::name_of(opcode);
    }
    auto input = device.transition(command::rst2init_qp, dctn);
    EXPECT_EQ(device.send(input), command_status::bad_resource);
    for (const command opcode : {command::query_dct, command::drain_dct, command::destroy_dct}) {
        EXPECT_EQ(device.plain(opcode, qpn), command_status::bad_resource) << prm::name_of(opcode);
    }
}

TEST_F(command_dct, others_cannot_touch_it)
{
    const std::uint32_t dctn = device.create_dct();
    commander other(machine.start(), 0, 1);
    commander stranger(device.process(), 0, 2);
    for (const command opcode : {command::query_dct, command::drain_dct, command::destroy_dct}) {
        EXPECT_EQ(other.plain(opcode, dctn), command_status::bad_resource);
        EXPECT_EQ(stranger.plain(opcode, dctn), command_status::bad_resource);
    }
}

TEST_F(command_dct, a_dead_process_leaves_none)
{
    test_process& mortal = machine.start();
    commander brief(mortal, 0, 1);
    brief.create_dct();
    mortal.kill();
    machine.start();
    EXPECT_EQ(machine.memory().qps.live, 0u);
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST_F(command_dct, an_initiator_has_no_receives)
{
    auto input         = device.qp_input({.service = prm::qp_service::dci});
    const auto context = (*input).at(prm::create_qp_in::qpc);
    context.put<prm::receive_queue_type::regular>(prm::qpc::rq_type);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    // UCX names the shared receive queue of its target there.
    const std::uint32_t srqn = device.create_srq();
    const std::uint32_t qpn  = device.create_qp({.service = prm::qp_service::dci, .srq = srqn});
    EXPECT_EQ(machine.memory().qps.records[qpn].srq, 0u);
    EXPECT_EQ(device.plain(command::destroy_rmp, srqn), command_status::ok);
    EXPECT_EQ(broken_invariants(machine.memory()), "");
}

TEST_F(command_dct, stream_channels_have_a_limit)
{
    auto input         = device.qp_input({.service = prm::qp_service::dci});
    const auto context = (*input).at(prm::create_qp_in::qpc);
    context.put<7>(prm::qpc::log_num_dci_stream_channels);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    context.put<6>(prm::qpc::log_num_dci_stream_channels);
    context.put<7>(prm::qpc::log_num_dci_errored_streams);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    context.put<6>(prm::qpc::log_num_dci_errored_streams);
    EXPECT_EQ(device.send(input), command_status::ok);
}

TEST_F(command_dct, optional_fields_of_initiators)
{
    const std::uint32_t qpn = device.create_qp({.service = prm::qp_service::dci});
    const auto move         = [&](command opcode, prm::qp_optional mask) {
        auto input = device.transition(opcode, qpn);
        (void)(*input).set(prm::modify_qp_in::opt_param_mask, mask);
        return device.send(input);
    };
    using prm::qp_optional;
    EXPECT_EQ(move(command::rst2init_qp, qp_optional::q_key), command_status::bad_parameter);
    EXPECT_EQ(move(command::rst2init_qp, qp_optional{}), command_status::ok);
    EXPECT_EQ(move(command::init2rtr_qp, qp_optional::rra_max), command_status::bad_parameter);
    EXPECT_EQ(move(command::init2rtr_qp, qp_optional::remote_atomic_enable), command_status::ok) << "as UCX does";
    EXPECT_EQ(move(command::rtr2rts_qp, qp_optional::remote_write_enable), command_status::bad_parameter);
    EXPECT_EQ(move(command::rtr2rts_qp, qp_optional{}), command_status::ok);
    const qp_record& made = machine.memory().qps.records[qpn];
    EXPECT_EQ(made.state, prm::qp_state::rts);
    EXPECT_EQ(made.retry_count, 7);
    EXPECT_EQ(made.rnr_retry, 7);
    EXPECT_EQ(made.ack_timeout, 14);
    EXPECT_EQ(made.path.remote_qpn, 0u) << "each request has its own address";
}

TEST_F(command_dct, an_initiator_is_used_again_after_a_reset)
{
    const std::uint32_t qpn   = initiator();
    qp_record& record         = machine.memory().qps.records[qpn];
    record.dc.errored_streams = 3;
    EXPECT_EQ(device.plain(command::to_err_qp, qpn), command_status::ok);
    EXPECT_EQ(device.plain(command::to_rst_qp, qpn), command_status::ok);
    EXPECT_EQ(record.dc.errored_streams, 0u);
    EXPECT_EQ(record.dc.log_streams, 2);
    device.connect(qpn, 1, 0);
    EXPECT_EQ(record.state, prm::qp_state::rts);
}

TEST_F(command_dct, a_stream_channel_in_error_is_reset)
{
    const std::uint32_t qpn = initiator();
    qp_record& record       = machine.memory().qps.records[qpn];
    EXPECT_EQ(reset_stream(qpn, 1), command_status::bad_resource_state) << "it is not in error";
    record.dc.errored_streams = 0b0110;
    EXPECT_EQ(reset_stream(qpn, 1), command_status::ok);
    EXPECT_EQ(record.dc.errored_streams, 0b0100u);
    EXPECT_EQ(reset_stream(qpn, 6), command_status::ok) << "6 is channel 2 of 4";
    EXPECT_EQ(record.dc.errored_streams, 0u);
    record.dc.errored_streams = 1;
    EXPECT_EQ(reset_stream(qpn, 0, 3), command_status::bad_parameter) << "another field";
    EXPECT_EQ(record.dc.errored_streams, 1u);
    const std::uint32_t other = device.create_qp();
    device.connect(other, 1, other);
    EXPECT_EQ(reset_stream(other, 0), command_status::bad_parameter) << "only initiators have channels";
}

} // namespace

} // namespace ucxl::softhca::test
