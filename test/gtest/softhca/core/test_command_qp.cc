// Commands on queue pairs: create, and the state machine.
#include "commander.h"

#include <gtest/gtest.h>

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;
using prm::qp_optional;
using prm::qp_service;
using prm::qp_state;

class command_qp : public ::testing::Test
{
protected:
    qp_record& record(std::uint32_t qpn) { return machine.memory().qps.records[qpn]; }

    command_status move(command opcode, std::uint32_t qpn)
    {
        auto input = device.transition(opcode, qpn);
        return device.send(input);
    }

    test_machine machine;
    commander device{machine.start(), 0, 1};
};

TEST_F(command_qp, is_made_of_what_it_refers_to_and_holds_it)
{
    qp_parts parts{.pd = device.alloc_pd(), .uar = device.alloc_uar()};
    parts.send_cq    = device.create_cq();
    parts.receive_cq = device.create_cq();

    const std::uint32_t qpn = device.create_qp(parts);
    const qp_record& qp     = record(qpn);
    EXPECT_GT(qpn, 1u) << "a number of management";
    EXPECT_EQ(qp.state, qp_state::reset);
    EXPECT_EQ(qp.send.offset, 64u << 4) << "behind 16 receives of 64 bytes";
    EXPECT_EQ(qp.receive.log_stride, 6);
    EXPECT_EQ(qp.buffer.length, (64u << 4) + (64u << 4));

    fabric& fabric = device.process().device();
    EXPECT_EQ(device.plain(command::dealloc_pd, parts.pd), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_cq, parts.send_cq), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_cq, parts.receive_cq), command_status::bad_resource_state);
    EXPECT_EQ(fabric.free_uar(parts.uar), command_status::bad_resource_state);
    EXPECT_EQ(fabric.destroy_umem(qp.umem), command_status::bad_resource_state);
    EXPECT_EQ(fabric.destroy_umem(qp.doorbell_umem), command_status::bad_resource_state);

    EXPECT_EQ(device.plain(command::destroy_qp, qpn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_qp, qpn), command_status::bad_resource);
    EXPECT_EQ(device.plain(command::destroy_cq, parts.send_cq), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_cq, parts.receive_cq), command_status::ok);
    EXPECT_EQ(device.plain(command::dealloc_pd, parts.pd), command_status::ok);
    EXPECT_EQ(fabric.free_uar(parts.uar), command_status::ok);
}

TEST_F(command_qp, takes_receives_from_a_shared_queue)
{
    const std::uint32_t srq = device.create_srq();
    const std::uint32_t qpn = device.create_qp({.srq = srq});
    EXPECT_EQ(record(qpn).srq, srq);
    EXPECT_FALSE(record(qpn).receive.present);
    EXPECT_EQ(record(qpn).send.offset, 0u);
    EXPECT_EQ(device.plain(command::destroy_rmp, srq), command_status::bad_resource_state);
    EXPECT_EQ(device.plain(command::destroy_qp, qpn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_rmp, srq), command_status::ok);

    auto input = device.qp_input({.service = qp_service::uc, .srq = device.create_srq()});
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
}

TEST_F(command_qp, may_have_no_queue_at_all)
{
    mailbox<prm::create_qp_in> input;
    (*input).put<command::create_qp>(prm::create_qp_in::opcode);
    const auto context = (*input).at(prm::create_qp_in::qpc);
    context.put<true>(prm::qpc::no_sq);
    context.put<prm::receive_queue_type::zero_size>(prm::qpc::rq_type);
    EXPECT_TRUE(context.set(prm::qpc::pd, device.alloc_pd()));
    EXPECT_EQ(device.send(input), command_status::ok);
}

template <typename Field, typename Value>
command_status with(commander& device, Field field, Value value)
{
    auto input = device.qp_input();
    if constexpr (std::is_same_v<typename Field::owner_type, prm::qpc>) {
        EXPECT_TRUE((*input).at(prm::create_qp_in::qpc).set(field, value));
    } else {
        EXPECT_TRUE((*input).set(field, value));
    }
    return device.send(input);
}

TEST_F(command_qp, is_checked_field_by_field)
{
    EXPECT_EQ(with(device, prm::qpc::st, qp_service::uc), command_status::ok);
    EXPECT_EQ(with(device, prm::qpc::st, qp_service::ud), command_status::ok);
    for (const qp_service service : {qp_service::xrc, qp_service::qp0, qp_service::qp1, qp_service::raw_datagram,
                                     qp_service::reg_umr, static_cast<qp_service>(0xff)}) {
        EXPECT_EQ(with(device, prm::qpc::st, service), command_status::bad_parameter);
    }
    EXPECT_EQ(with(device, prm::qpc::pd, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::uar_page, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::cqn_snd, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::cqn_rcv, 0xffffffU), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::log_sq_size, 15U), command_status::bad_resource) << "buffer too short";
    EXPECT_EQ(with(device, prm::qpc::log_rq_size, 5U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::log_rq_stride, 6U), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::rq_type, 2U), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::rq_type, prm::receive_queue_type::shared_rmp_xrq), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::rlkey, true), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::wq_signature, true), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::send_dbr_mode, 1U), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::pm_state, prm::path_migration::reserved), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::dbr_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::qpc::dbr_umem_id, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::dbr_addr, std::uint64_t{57}), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::qpc::dbr_addr, std::uint64_t{4}), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::create_qp_in::wq_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with(device, prm::create_qp_in::wq_umem_id, 0U), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::create_qp_in::wq_umem_offset, std::uint64_t{1}), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::create_qp_in::wq_umem_offset, ~std::uint64_t{0}), command_status::bad_resource);
    EXPECT_EQ(with(device, prm::create_qp_in::input_qpn, 5U), command_status::bad_parameter);
    EXPECT_EQ(machine.memory().qps.live, 2u);
}

TEST_F(command_qp, does_not_take_objects_of_another_context)
{
    commander other(device.process(), 0, 2);
    auto input = device.qp_input({.send_cq = other.create_cq()});
    EXPECT_EQ(device.send(input), command_status::bad_resource);
    input = device.qp_input({.pd = other.alloc_pd()});
    EXPECT_EQ(device.send(input), command_status::bad_resource);
    const std::uint32_t qpn = device.create_qp();
    for (const command opcode : {command::query_qp, command::destroy_qp, command::to_err_qp, command::to_rst_qp}) {
        EXPECT_EQ(other.plain(opcode, qpn), command_status::bad_resource);
    }
    auto step = other.transition(command::rst2init_qp, qpn);
    EXPECT_EQ(other.send(step), command_status::bad_resource);
}

// Every command in every state: only those of the specification succeed, the others change nothing.
TEST_F(command_qp, goes_from_state_to_state_as_the_specification_says)
{
    struct edge {
        command opcode;
        qp_state from;
        qp_state to;
    };
    const std::vector<edge> edges = {
        {command::rst2init_qp, qp_state::reset, qp_state::init},
        {command::init2init_qp, qp_state::init, qp_state::init},
        {command::init2rtr_qp, qp_state::init, qp_state::rtr},
        {command::rtr2rts_qp, qp_state::rtr, qp_state::rts},
        {command::rts2rts_qp, qp_state::rts, qp_state::rts},
        {command::sqerr2rts_qp, qp_state::send_error, qp_state::rts},
        {command::sqd_rts_qp, qp_state::send_drain, qp_state::rts},
    };
    for (const qp_service service : {qp_service::rc, qp_service::uc, qp_service::ud}) {
        const std::uint32_t qpn = device.create_qp({.service = service});
        for (const qp_state state : {qp_state::reset, qp_state::init, qp_state::rtr, qp_state::rts,
                                     qp_state::send_error, qp_state::send_drain, qp_state::error}) {
            for (const edge& by : edges) {
                device.plain(command::to_rst_qp, qpn);
                ASSERT_EQ(move(command::rst2init_qp, qpn), command_status::ok);
                record(qpn).state           = state;
                const command_status status = move(by.opcode, qpn);
                EXPECT_EQ(status, state == by.from ? command_status::ok : command_status::bad_qp_state);
                EXPECT_EQ(record(qpn).state, state == by.from ? by.to : state);
            }
            record(qpn).state = state;
            EXPECT_EQ(device.plain(command::to_err_qp, qpn), command_status::ok);
            EXPECT_EQ(record(qpn).state, qp_state::error);
            record(qpn).state = state;
            EXPECT_EQ(device.plain(command::to_rst_qp, qpn), command_status::ok);
            EXPECT_EQ(record(qpn).state, qp_state::reset);
        }
    }
}

TEST_F(command_qp, takes_required_fields_without_a_mask)
{
    const std::uint32_t qpn = device.create_qp();
    ASSERT_EQ(move(command::rst2init_qp, qpn), command_status::ok);
    EXPECT_TRUE(record(qpn).remote_read && record(qpn).remote_write && record(qpn).remote_atomic);
    EXPECT_EQ(record(qpn).path.port, 1);

    auto input         = device.transition(command::init2rtr_qp, qpn, 7, 0x1234);
    const auto context = (*input).at(prm::modify_qp_in::qpc);
    EXPECT_TRUE(context.set(prm::qpc::next_rcv_psn, 0xabcdefU));
    context.at(prm::qpc::primary_address_path).put<true>(prm::ads::grh);
    ASSERT_EQ(device.send(input), command_status::ok);
    EXPECT_EQ(record(qpn).path.remote_lid, 7);
    EXPECT_EQ(record(qpn).path.remote_qpn, 0x1234u);
    EXPECT_TRUE(record(qpn).path.has_grh);
    EXPECT_EQ(record(qpn).expected_psn, 0xabcdefu);
    EXPECT_EQ(record(qpn).max_reads_in, 16);
    EXPECT_EQ(record(qpn).min_rnr_timer, 12);
    EXPECT_EQ(record(qpn).retry_count, 0) << "not of this transition";

    input = device.transition(command::rtr2rts_qp, qpn);
    EXPECT_TRUE((*input).at(prm::modify_qp_in::qpc).set(prm::qpc::next_send_psn, 77U));
    ASSERT_EQ(device.send(input), command_status::ok);
    EXPECT_EQ(record(qpn).send.psn, 77u);
    EXPECT_EQ(record(qpn).retry_count, 7);
    EXPECT_EQ(record(qpn).rnr_retry, 7);
    EXPECT_EQ(record(qpn).ack_timeout, 14);
    EXPECT_EQ(record(qpn).max_reads_out, 16);
    EXPECT_EQ(record(qpn).path.remote_qpn, 0x1234u) << "not of this transition";
}

TEST_F(command_qp, takes_optional_fields_by_their_mask_only)
{
    const std::uint32_t qpn = device.create_qp();
    device.connect(qpn, 1, qpn);
    auto input         = device.transition(command::rts2rts_qp, qpn);
    const auto context = (*input).at(prm::modify_qp_in::qpc);
    context.put<false>(prm::qpc::rre);
    context.put<3>(prm::qpc::min_rnr_nak);
    ASSERT_EQ(device.send(input), command_status::ok);
    EXPECT_TRUE(record(qpn).remote_read);
    EXPECT_EQ(record(qpn).min_rnr_timer, 12);
    (*input).put<qp_optional::remote_read_enable>(prm::modify_qp_in::opt_param_mask);
    ASSERT_EQ(device.send(input), command_status::ok);
    EXPECT_FALSE(record(qpn).remote_read);
    EXPECT_TRUE(record(qpn).remote_write);
    EXPECT_EQ(record(qpn).min_rnr_timer, 12);
    (*input).put<qp_optional::rnr_timeout>(prm::modify_qp_in::opt_param_mask);
    ASSERT_EQ(device.send(input), command_status::ok);
    EXPECT_EQ(record(qpn).min_rnr_timer, 3);
    for (const qp_optional other : {qp_optional::q_key, qp_optional::alternate_path, qp_optional::dc_key}) {
        EXPECT_TRUE((*input).set(prm::modify_qp_in::opt_param_mask, other));
        EXPECT_EQ(device.send(input), command_status::bad_parameter);
    }
    EXPECT_TRUE((*input).set(prm::modify_qp_in::opt_param_mask, 1U << 31));
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
}

TEST_F(command_qp, refuses_values_the_device_does_not_have)
{
    const auto after = [&](command opcode, auto change) {
        const std::uint32_t qpn = device.create_qp();
        if (opcode != command::rst2init_qp) {
            EXPECT_EQ(move(command::rst2init_qp, qpn), command_status::ok);
        }
        if (opcode == command::rtr2rts_qp) {
            EXPECT_EQ(move(command::init2rtr_qp, qpn), command_status::ok);
        }
        const qp_state before = record(qpn).state;
        auto input            = device.transition(opcode, qpn);
        change((*input).at(prm::modify_qp_in::qpc));
        const command_status status = device.send(input);
        EXPECT_EQ(record(qpn).state == before, status != command_status::ok);
        return status;
    };
    using context      = prm::view<prm::qpc>;
    constexpr auto bad = command_status::bad_parameter;
    const auto path    = [](context input) { return input.at(prm::qpc::primary_address_path); };
    EXPECT_EQ(after(command::rst2init_qp, [&](context input) { path(input).template put<2>(prm::ads::vhca_port_num); }),
              bad);
    EXPECT_EQ(after(command::rst2init_qp, [&](context input) { path(input).template put<1>(prm::ads::pkey_index); }),
              bad);
    EXPECT_EQ(after(command::rst2init_qp,
                    [&](context input) { input.put<prm::atomic_mode::up_to_16b>(prm::qpc::atomic_mode); }),
              bad);
    EXPECT_EQ(after(command::init2rtr_qp, [&](context input) { input.put<0>(prm::qpc::mtu); }), bad);
    EXPECT_EQ(after(command::init2rtr_qp, [&](context input) { input.put<6>(prm::qpc::mtu); }), bad);
    EXPECT_EQ(after(command::init2rtr_qp, [&](context input) { input.put<31>(prm::qpc::log_msg_max); }), bad);
    EXPECT_EQ(after(command::init2rtr_qp, [&](context input) { input.put<5>(prm::qpc::log_rra_max); }), bad);
    EXPECT_EQ(after(command::init2rtr_qp,
                    [&](context input) {
                        path(input).template put<true>(prm::ads::grh);
                        path(input).template put<1>(prm::ads::src_addr_index);
                    }),
              bad);
    EXPECT_EQ(after(command::rtr2rts_qp, [&](context input) { input.put<5>(prm::qpc::log_sra_max); }), bad);
    EXPECT_EQ(after(command::rtr2rts_qp, [](context) {}), command_status::ok);
}

TEST_F(command_qp, refuses_what_the_context_extension_asks_for)
{
    const std::uint32_t qpn = device.create_qp();
    auto input              = device.transition(command::rst2init_qp, qpn);
    (*input).put<true>(prm::modify_qp_in::qpc_ext);
    EXPECT_EQ(device.send(input), command_status::bad_input_length);
    input.bytes.resize(prm::modify_qp_ext_in::size_bytes);
    const auto extended = *prm::view<prm::modify_qp_ext_in>::over(std::span<std::byte>(input.bytes));
    extended.put<1>(prm::modify_qp_ext_in::opt_param_mask_95_32);
    EXPECT_EQ(device.send(std::span<const std::byte>(input.bytes)), command_status::bad_parameter);
    extended.put<0>(prm::modify_qp_ext_in::opt_param_mask_95_32);
    EXPECT_EQ(device.send(std::span<const std::byte>(input.bytes)), command_status::ok);
}

TEST_F(command_qp, answers_queries_with_what_it_was_given_and_where_it_is)
{
    auto create = device.qp_input();
    EXPECT_TRUE((*create).at(prm::create_qp_in::qpc).set(prm::qpc::user_index, 0xabcU));
    ASSERT_EQ(device.send(create), command_status::ok);
    const std::uint32_t qpn = device.out<prm::create_qp_out>().get(prm::create_qp_out::qpn);
    device.connect(qpn, 9, 0x77);
    ASSERT_EQ(device.plain(command::query_qp, qpn), command_status::ok);
    const auto context = device.out<prm::query_qp_out>().at(prm::query_qp_out::qpc);
    EXPECT_EQ(context.get(prm::qpc::state), qp_state::rts);
    EXPECT_EQ(context.get(prm::qpc::user_index), 0xabcu);
    EXPECT_EQ(context.get(prm::qpc::remote_qpn), 0x77u);
    EXPECT_EQ(context.get(prm::qpc::mtu), prm::path_mtu::bytes_4096);
    EXPECT_EQ(context.get(prm::qpc::log_sq_size), 4);
    EXPECT_EQ(context.at(prm::qpc::primary_address_path).get(prm::ads::rlid), 9);
    EXPECT_EQ(context.at(prm::qpc::primary_address_path).get(prm::ads::ack_timeout), 14);
}

TEST_F(command_qp, is_as_new_after_a_reset)
{
    const std::uint32_t qpn = device.create_qp();
    device.connect(qpn, 1, qpn);
    record(qpn).send.consumed         = 5;
    record(qpn).send.rung             = 7;
    record(qpn).receive.consumed      = 3;
    record(qpn).send.progress.waiting = requester_wait::rnr;
    EXPECT_EQ(device.plain(command::to_rst_qp, qpn), command_status::ok);
    EXPECT_EQ(record(qpn).send.consumed, 0);
    EXPECT_EQ(record(qpn).send.rung, 0);
    EXPECT_TRUE(record(qpn).send.is_record_old);
    EXPECT_EQ(record(qpn).send.old_record, 7);
    EXPECT_EQ(record(qpn).send.progress.waiting, requester_wait::none);
    EXPECT_EQ(record(qpn).send.log_size, 4);
    EXPECT_TRUE(record(qpn).send.present);
    EXPECT_EQ(record(qpn).send.offset, 64u << 4);
    EXPECT_EQ(record(qpn).receive.consumed, 0);
    device.connect(qpn, 1, qpn);
    EXPECT_EQ(record(qpn).state, qp_state::rts);
}

TEST_F(command_qp, completions_held_back_are_written_before_it_ends)
{
    for (const command opcode : {command::to_rst_qp, command::destroy_qp}) {
        const std::uint32_t qpn = device.create_qp();
        cq_record& sends        = machine.memory().cqs.records[record(qpn).send_cq];
        cq_record& receives     = machine.memory().cqs.records[record(qpn).receive_cq];
        sends.holds = receives.holds = true; // as the adversarial order does
        EXPECT_EQ(device.plain(opcode, qpn), command_status::ok);
        for (const cq_record* const cq : {&sends, &receives}) {
            EXPECT_FALSE(cq->holds) << prm::name_of(opcode);
            EXPECT_EQ(cq->producer, 1u) << prm::name_of(opcode);
        }
    }
}

} // namespace
} // namespace ucxl::softhca::test
