// Commands on objects that others refer to (PDs, UARs, UMEMs, CQs and shared receive queues), and what all commands
// have in common.
#include "commander.h"

#include <gtest/gtest.h>

#include "prm/cqe.h"
#include "prm/doorbell.h"

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;

class command_resources : public ::testing::Test
{
protected:
    test_machine machine{{.devices = 1, .functions_per_device = 2}};
    commander device{machine.start(), 0, 1};
};

TEST_F(command_resources, mailboxes_too_short_are_refused)
{
    std::array<std::byte, 16> input{};
    std::array<std::byte, 32> out;
    fabric& fabric = device.process().device();
    for (std::size_t length = 0; length < 8; ++length) {
        EXPECT_EQ(fabric.command(0, 1, std::span(input).first(length), out), command_status::bad_input_length);
        EXPECT_EQ(out[0], std::byte{0x50});
    }
    prm::view<prm::any_input>::over(input)->put<command::alloc_pd>(prm::any_input::opcode);
    EXPECT_EQ(fabric.command(0, 1, std::span(input).first(15), out), command_status::bad_input_length);
    out.fill(std::byte{0xcc});
    for (std::size_t length = 0; length < 16; ++length) {
        EXPECT_EQ(fabric.command(0, 1, input, std::span(out).first(length)), command_status::bad_output_length);
    }
    EXPECT_TRUE(std::ranges::all_of(out, [](std::byte one) { return one == std::byte{0xcc}; })) << "left alone";
    EXPECT_EQ(fabric.command(0, 1, input, std::span(out).first(16)), command_status::ok);
    EXPECT_EQ(device.send(std::span(input), 32), command_status::ok);
    prm::view<prm::any_input>::over(input)->put<command::query_cq>(prm::any_input::opcode);
    EXPECT_EQ(device.send(std::span(input), 271), command_status::bad_output_length);
}

TEST_F(command_resources, a_refused_command_answers_nothing_but_its_status)
{
    EXPECT_EQ(device.plain(command::query_cq, 77), command_status::bad_resource);
    EXPECT_EQ(device.out_bytes()[0], std::byte{0x05});
    EXPECT_TRUE(std::ranges::all_of(device.out_bytes().subspan(1), [](std::byte one) { return one == std::byte{0}; }));
}

TEST_F(command_resources, unknown_commands_and_functions_are_refused)
{
    EXPECT_EQ(device.plain(static_cast<command>(0xbff), 0), command_status::bad_operation);
    EXPECT_EQ(device.plain(static_cast<command>(0xffff), 0), command_status::bad_operation);
    EXPECT_EQ(device.plain(command::create_xrc_srq, 0), command_status::bad_operation);
    EXPECT_EQ(machine.memory().counts.unknown_commands, 1u);
    EXPECT_EQ(machine.memory().counts.failed_commands[0xbff], 1u);
    std::array<std::byte, 16> input{};
    std::array<std::byte, 16> out{};
    EXPECT_EQ(device.process().device().command(2, 0, input, out), command_status::bad_parameter);
}

TEST_F(command_resources, protection_domains_come_and_go)
{
    const std::uint32_t first  = device.alloc_pd();
    const std::uint32_t second = device.alloc_pd();
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    EXPECT_EQ(device.plain(command::dealloc_pd, first), command_status::ok);
    EXPECT_EQ(device.plain(command::dealloc_pd, first), command_status::bad_resource);
    EXPECT_EQ(device.plain(command::dealloc_pd, 0), command_status::bad_resource);
    EXPECT_EQ(device.plain(command::dealloc_pd, 0xffffff), command_status::bad_resource);
    EXPECT_EQ(machine.memory().pds.live, 1u);
    EXPECT_EQ(machine.memory().counts.commands[0x801], 4u);
    EXPECT_EQ(machine.memory().counts.failed_commands[0x801], 3u);
}

TEST_F(command_resources, objects_of_other_contexts_functions_and_processes_are_not_there)
{
    const std::uint32_t pd = device.alloc_pd();
    commander other_context(device.process(), 0, 2);
    commander other_function(device.process(), 1, 1);
    commander other_process(machine.start(), 0, 1);
    commander kernel_of_other(other_process.process(), 0, 0);
    commander kernel(device.process(), 0, 0);
    for (commander* stranger : {&other_context, &other_function, &other_process, &kernel_of_other}) {
        EXPECT_EQ(stranger->plain(command::dealloc_pd, pd), command_status::bad_resource);
    }
    EXPECT_EQ(kernel.plain(command::dealloc_pd, pd), command_status::ok);
}

TEST_F(command_resources, a_freed_number_is_not_given_out_again_at_once)
{
    const std::uint32_t first = device.alloc_pd();
    EXPECT_EQ(device.plain(command::dealloc_pd, first), command_status::ok);
    for (int i = 0; i < 200; ++i) {
        const std::uint32_t next = device.alloc_pd();
        EXPECT_NE(next, first);
        EXPECT_EQ(device.plain(command::dealloc_pd, next), command_status::ok);
    }
}

TEST_F(command_resources, a_full_table_refuses_until_something_is_freed)
{
    std::vector<std::uint32_t> pds;
    for (std::size_t i = 1; i < max_pds; ++i) {
        pds.push_back(device.alloc_pd());
    }
    EXPECT_EQ(device.plain(command::alloc_pd, 0), command_status::limit_exceeded);
    EXPECT_EQ(device.plain(command::dealloc_pd, pds[77]), command_status::ok);
    EXPECT_EQ(device.alloc_pd(), pds[77]);
}

TEST_F(command_resources, a_full_table_is_freed_of_what_dead_processes_left)
{
    commander dying(machine.start(), 0, 1);
    for (std::size_t i = 1; i < max_pds; ++i) {
        dying.alloc_pd();
    }
    EXPECT_EQ(device.plain(command::alloc_pd, 0), command_status::limit_exceeded);
    dying.process().kill();
    EXPECT_EQ(device.plain(command::alloc_pd, 0), command_status::ok);
    EXPECT_EQ(machine.memory().pds.live, 1u);
    EXPECT_EQ(machine.memory().counts.clients_lost, 1u);
}

TEST_F(command_resources, umems_must_be_ranges_of_addresses)
{
    fabric& fabric = device.process().device();
    EXPECT_FALSE(fabric.create_umem(0, 1, 0x1000, 0, 0));
    EXPECT_FALSE(fabric.create_umem(0, 1, ~std::uint64_t{0}, 2, 0));
    EXPECT_FALSE(fabric.create_umem(2, 1, 0x1000, 1, 0));
    EXPECT_TRUE(fabric.create_umem(0, 1, ~std::uint64_t{0}, 1, 0));
}

TEST_F(command_resources, completion_queues_come_and_go)
{
    auto input = device.cq_input(5);
    ASSERT_EQ(device.send(input), command_status::ok);
    const std::uint32_t cqn = device.out<prm::create_cq_out>().get(prm::create_cq_out::cqn);
    const cq_record& cq     = machine.memory().cqs.records[cqn];
    EXPECT_EQ(cq.log_size, 5);
    EXPECT_EQ(cq.buffer.length, 64u << 5);
    EXPECT_EQ(cq.doorbell.length, 8u);
    EXPECT_EQ(machine.memory().umems.records[cq.umem].users, 1u);
    EXPECT_EQ(device.process().device().destroy_umem(cq.umem), command_status::bad_resource_state);
    EXPECT_EQ(device.process().device().free_uar(cq.uar), command_status::bad_resource_state);

    ASSERT_EQ(device.plain(command::query_cq, cqn), command_status::ok);
    const auto context = device.out<prm::query_cq_out>().at(prm::query_cq_out::cqc);
    EXPECT_EQ(context.get(prm::cqc::log_cq_size), 5);
    EXPECT_EQ(context.get(prm::cqc::status), prm::queue_status::ok);
    EXPECT_EQ(context.get(prm::cqc::st), prm::queue_arm_state::fired);

    const std::uint32_t umem = cq.umem;
    EXPECT_EQ(device.plain(command::destroy_cq, cqn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_cq, cqn), command_status::bad_resource);
    EXPECT_EQ(device.process().device().destroy_umem(umem), command_status::ok);
}

// One field at a time: its value and the resulting status.
template <typename Field, typename Value>
command_status with_cqc(commander& device, Field field, Value value)
{
    auto input = device.cq_input();
    EXPECT_TRUE((*input).at(prm::create_cq_in::cqc).set(field, value));
    return device.send(input);
}

template <typename Field, typename Value>
command_status with_cq(commander& device, Field field, Value value)
{
    auto input = device.cq_input();
    EXPECT_TRUE((*input).set(field, value));
    return device.send(input);
}

TEST_F(command_resources, completion_queues_are_checked_field_by_field)
{
    EXPECT_EQ(with_cqc(device, prm::cqc::log_cq_size, 5U), command_status::bad_resource) << "buffer too short";
    EXPECT_EQ(with_cqc(device, prm::cqc::log_cq_size, 23U), command_status::limit_exceeded);
    EXPECT_EQ(with_cqc(device, prm::cqc::cqe_sz, prm::cqe_size::bytes_128), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::cqe_sz, prm::cqe_size::bytes_128_padded), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::cqe_sz, 3U), command_status::bad_parameter);
    EXPECT_EQ(with_cqc(device, prm::cqc::cqe_compression_en, true), command_status::bad_parameter);
    EXPECT_EQ(with_cqc(device, prm::cqc::uar_page, 0U), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::uar_page, 4095U), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_umem_id, 0xffffffffU), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_addr, std::uint64_t{57}), command_status::bad_resource);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_addr, std::uint64_t{52}), command_status::bad_parameter);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_addr, std::uint64_t{56}), command_status::ok);
    EXPECT_EQ(with_cqc(device, prm::cqc::dbr_addr, ~std::uint64_t{0}), command_status::bad_resource);
    EXPECT_EQ(with_cq(device, prm::create_cq_in::cq_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with_cq(device, prm::create_cq_in::cq_umem_id, 0U), command_status::bad_resource);
    EXPECT_EQ(with_cq(device, prm::create_cq_in::cq_umem_offset, std::uint64_t{1}), command_status::bad_resource);
    EXPECT_EQ(with_cq(device, prm::create_cq_in::cq_umem_offset, ~std::uint64_t{0}), command_status::bad_resource);
    EXPECT_EQ(machine.memory().cqs.live, 1u);
}

TEST_F(command_resources, completion_queues_need_memory_the_device_may_write)
{
    auto input = device.cq_input();
    (*input).put(prm::create_cq_in::cq_umem_id, device.umem(64 << 4, 0).umem);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
}

TEST_F(command_resources, modifying_a_completion_queue_changes_only_what_is_selected)
{
    const std::uint32_t cqn = device.create_cq();
    mailbox<prm::modify_cq_in> input;
    (*input).put<command::modify_cq>(prm::modify_cq_in::opcode);
    EXPECT_TRUE((*input).set(prm::modify_cq_in::cqn, cqn));
    (*input).at(prm::modify_cq_in::cqc).put<true>(prm::cqc::oi);
    EXPECT_EQ(device.send(input), command_status::ok);
    EXPECT_FALSE(machine.memory().cqs.records[cqn].overrun_ignore);
    (*input).put<prm::cq_modify::oi>(prm::modify_cq_in::modify_field_select);
    EXPECT_EQ(device.send(input), command_status::ok);
    EXPECT_TRUE(machine.memory().cqs.records[cqn].overrun_ignore);
    (*input).put<prm::cq_modify::cq_period>(prm::modify_cq_in::modify_field_select);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    (*input).put<prm::cq_modify::oi>(prm::modify_cq_in::modify_field_select);
    (*input).put<2>(prm::modify_cq_in::op_mod);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
}

TEST_F(command_resources, resizing_a_completion_queue_marks_the_end_of_its_old_buffer)
{
    const std::uint32_t cqn = device.create_cq(2);
    cq_record& cq           = machine.memory().cqs.records[cqn];
    const std::uint32_t old = cq.umem;
    std::byte* const before = device.process().at(cq.buffer.address, 4 * 64);
    cq.producer             = 6;
    const queue_memory next = device.umem(64 << 3);
    const auto consumed     = [&](std::uint32_t count) {
        std::byte* const record = device.process().at(cq.doorbell.address, 8);
        EXPECT_TRUE(prm::view<prm::cq_doorbell_record>::over(std::span(record, 8))
                            ->set(prm::cq_doorbell_record::consumer_counter, count));
    };
    mailbox<prm::modify_cq_in> input;
    (*input).put<command::modify_cq>(prm::modify_cq_in::opcode);
    (*input).put<1>(prm::modify_cq_in::op_mod);
    EXPECT_TRUE((*input).set(prm::modify_cq_in::cqn, cqn));
    (*input).put<true>(prm::modify_cq_in::cq_umem_valid);
    (*input).put(prm::modify_cq_in::cq_umem_id, next.umem);
    (*input).at(prm::modify_cq_in::cqc).put<4>(prm::cqc::log_cq_size);
    EXPECT_EQ(device.send(input), command_status::bad_resource) << "buffer too short";
    (*input).at(prm::modify_cq_in::cqc).put<3>(prm::cqc::log_cq_size);
    consumed(2);
    EXPECT_EQ(device.send(input), command_status::bad_size_outstanding_cqe) << "no room for the marker";
    consumed(4);
    ASSERT_EQ(device.send(input), command_status::ok);
    const auto marker = *prm::const_view<prm::cqe64>::over(std::span(before + 2 * 64, 64));
    EXPECT_EQ(marker.get(prm::cqe64::opcode), prm::cqe_opcode::resize_cq);
    EXPECT_EQ(marker.get(prm::cqe64::owner), true) << "entry 6 of a queue of 4: the second turn";
    EXPECT_EQ(cq.producer, 7u);
    EXPECT_EQ(cq.log_size, 3);
    EXPECT_EQ(cq.buffer.address, reinterpret_cast<std::uint64_t>(next.bytes.data()));
    EXPECT_EQ(device.process().device().destroy_umem(old), command_status::ok);
    EXPECT_EQ(device.process().device().destroy_umem(next.umem), command_status::bad_resource_state);
    (*input).at(prm::modify_cq_in::cqc).put<1>(prm::cqc::log_cq_size);
    EXPECT_EQ(device.send(input), command_status::bad_size_outstanding_cqe);
}

TEST_F(command_resources, shared_receive_queues_come_and_go)
{
    const std::uint32_t rmpn = device.create_srq(6, 6);
    const srq_record& srq    = machine.memory().srqs.records[rmpn];
    EXPECT_EQ(device.plain(command::dealloc_pd, srq.pd), command_status::bad_resource_state);
    ASSERT_EQ(device.plain(command::query_rmp, rmpn), command_status::ok);
    const auto context = device.out<prm::query_rmp_out>().at(prm::query_rmp_out::rmp_context);
    EXPECT_EQ(context.get(prm::rmpc::state), prm::rmp_state::ready);
    EXPECT_EQ(context.at(prm::rmpc::wq).get(prm::wq::log_wq_sz), 6);
    EXPECT_EQ(device.plain(command::destroy_rmp, rmpn), command_status::ok);
    EXPECT_EQ(device.plain(command::destroy_rmp, rmpn), command_status::bad_resource);
    EXPECT_EQ(device.plain(command::dealloc_pd, srq.pd), command_status::ok);
}

template <typename Field, typename Value>
command_status with_wq(commander& device, Field field, Value value)
{
    auto input = device.rmp_input();
    EXPECT_TRUE((*input).at(prm::create_rmp_in::rmp_context).at(prm::rmpc::wq).set(field, value));
    return device.send(input);
}

TEST_F(command_resources, shared_receive_queues_are_checked_field_by_field)
{
    EXPECT_EQ(with_wq(device, prm::wq::wq_type, prm::wq_type::cyclic), command_status::ok);
    EXPECT_EQ(with_wq(device, prm::wq::wq_type, prm::wq_type::cyclic_striding), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::wq_type, 9U), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::log_wq_stride, 3U), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::log_wq_stride, 10U), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::log_wq_stride, 6U), command_status::bad_resource);
    EXPECT_EQ(with_wq(device, prm::wq::log_wq_sz, 16U), command_status::limit_exceeded);
    EXPECT_EQ(with_wq(device, prm::wq::pd, 0U), command_status::bad_resource);
    EXPECT_EQ(with_wq(device, prm::wq::wq_umem_valid, false), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::wq_umem_id, 0U), command_status::bad_resource);
    EXPECT_EQ(with_wq(device, prm::wq::dbr_addr, std::uint64_t{64}), command_status::bad_resource);
    EXPECT_EQ(with_wq(device, prm::wq::dbr_addr, std::uint64_t{4}), command_status::bad_parameter);
    EXPECT_EQ(with_wq(device, prm::wq::wq_signature, true), command_status::bad_parameter);
}

TEST_F(command_resources, the_limit_of_a_shared_receive_queue_is_set_by_modify)
{
    const std::uint32_t rmpn = device.create_srq(4);
    mailbox<prm::modify_rmp_in> input;
    (*input).put<command::modify_rmp>(prm::modify_rmp_in::opcode);
    EXPECT_TRUE((*input).set(prm::modify_rmp_in::rmpn, rmpn));
    (*input).put<prm::rmp_state::ready>(prm::modify_rmp_in::rmp_state);
    (*input).put<1>(prm::modify_rmp_in::modify_bitmask);
    const auto context = (*input).at(prm::modify_rmp_in::rmp_context);
    context.put<prm::rmp_state::ready>(prm::rmpc::state);
    context.at(prm::rmpc::wq).put<16>(prm::wq::lwm);
    EXPECT_EQ(device.send(input), command_status::ok);
    EXPECT_EQ(machine.memory().srqs.records[rmpn].limit, 16);
    context.at(prm::rmpc::wq).put<17>(prm::wq::lwm);
    EXPECT_EQ(device.send(input), command_status::bad_parameter);
    EXPECT_EQ(machine.memory().srqs.records[rmpn].limit, 16);
    (*input).put<prm::rmp_state::error>(prm::modify_rmp_in::rmp_state);
    EXPECT_EQ(device.send(input), command_status::bad_resource_state);
}

TEST_F(command_resources, faults_answer_instead_of_the_command)
{
    fault_plan plan;
    plan.rules[0] = {.kind = fault_kind::command, .status = 0x0f, .opcode = 0x800, .first = 2, .times = 2};
    test_machine faulty({.faults = plan});
    commander on(faulty.start(), 0, 1);
    std::vector<command_status> answers;
    for (int i = 0; i < 5; ++i) {
        answers.push_back(on.plain(command::alloc_pd, 0));
    }
    using enum command_status;
    EXPECT_EQ(answers, (std::vector{ok, no_resources, no_resources, ok, ok}));
    EXPECT_EQ(faulty.memory().pds.live, 3u);
    EXPECT_EQ(faulty.memory().counts.faults_injected, 2u);
}

TEST_F(command_resources, the_trace_says_what_was_asked_and_why_it_was_refused)
{
    device.process().trace_wanted = true;
    device.plain(command::dealloc_pd, 99);
    const std::string& text = device.process().traced;
    EXPECT_NE(text.find("function 0 uid 1"), std::string::npos) << text;
    EXPECT_NE(text.find("dealloc_pd"), std::string::npos) << text;
    EXPECT_NE(text.find("bad_resource"), std::string::npos) << text;
    EXPECT_NE(text.find("refused: no such object"), std::string::npos) << text;
    EXPECT_EQ(text.back(), '\n');
}

TEST_F(command_resources, events_of_an_object_go_where_its_process_says)
{
    const std::uint32_t cqn = device.create_cq();
    fabric& mine            = device.process().device();
    fabric& other           = machine.start().device();
    const event_route route{.channel = 5, .kind = 1, .value = 42};
    EXPECT_EQ(mine.route_completions(cqn, route)->channel, -1);
    EXPECT_EQ(mine.route_completions(cqn, {})->value, 42u);
    EXPECT_FALSE(other.route_completions(cqn, route));
    EXPECT_FALSE(other.route_cq_errors(cqn, route));
    EXPECT_FALSE(mine.route_queue_pair(cqn, route));
    EXPECT_FALSE(mine.route_shared_receive_queue(cqn, route));
    EXPECT_TRUE(mine.route_queue_pair(device.create_qp(), route));
    EXPECT_TRUE(mine.route_shared_receive_queue(device.create_srq(), route));
}

} // namespace
} // namespace ucxl::softhca::test
