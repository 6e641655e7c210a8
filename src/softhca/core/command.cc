// How a command gets from its mailbox to its handler and back.
#include <array>
#include <format>

#include "command_call.h"
#include "cost.h"
#include "device_failure.h"
#include "fabric.h"
#include "fault_plan.h"
#include "prm/decode.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

const command_entry* find_entry(prm::command opcode)
{
    for (const command_entries family :
         {qp_commands(), qp_transition_commands(), mkey_commands(), cq_commands(), srq_commands(), vhca_commands(),
          resource_commands(), port_commands(), capability_commands()}) {
        const auto found = std::ranges::find(family, opcode, &command_entry::opcode);
        if (found != family.end()) {
            return &*found;
        }
    }
    return nullptr;
}

command_status dispatch(command_call& call, std::size_t out_bytes, prm::command opcode)
{
    const command_entry* const found = find_entry(opcode);
    if (found == nullptr) {
        return call.refuse(command_status::bad_operation, "no such command in this model");
    }
    if (call.in.size() < found->in_bytes) {
        return call.refuse(command_status::bad_input_length, "input mailbox too short");
    }
    if (out_bytes < found->out_bytes) {
        return call.refuse(command_status::bad_output_length, "output mailbox too short");
    }
    if (has_failed(call.memory(), call.function) && !ends_an_object(opcode)) {
        return call.refuse(command_status::internal_error, "the device has failed");
    }
    if (const fault_rule* const rule = strike(call.memory(), fault_kind::command, std::to_underlying(opcode))) {
        return call.refuse(static_cast<command_status>(rule->status), "--fault");
    }
    call.cost_ns = command_cost(static_cast<profile>(call.memory().profile), opcode);
    return found->execute(call);
}

void count(statistics& counts, prm::command opcode, command_status status)
{
    const std::size_t index = std::to_underlying(opcode);
    if (index >= command_opcodes) {
        ++counts.unknown_commands;
        return;
    }
    ++counts.commands[index];
    if (status != command_status::ok) {
        ++counts.failed_commands[index];
    }
}

void write_status(std::span<std::byte> out, command_status status)
{
    (void)prm::view<prm::any_output>::over(out)->set(prm::any_output::status, status);
}

} // namespace

command_status fabric::command(function_id which, std::uint16_t uid, std::span<const std::byte> in,
                               std::span<std::byte> out)
{
    const auto head = prm::const_view<prm::any_input>::over(in);
    if (out.size() < prm::any_output::size_bytes) {
        return command_status::bad_output_length;
    }
    if (!head || which >= _device.memory.functions) {
        const auto status = head ? command_status::bad_parameter : command_status::bad_input_length;
        std::ranges::fill(out, std::byte{0});
        write_status(out, status);
        return status;
    }
    const prm::command opcode = head->get(prm::any_input::opcode);
    alignas(8) std::array<std::byte, longest_answer> answer{};
    command_call call{_device, _queue_pairs, which, uid, in, answer};
    command_status status;
    {
        const locked guard(_device);
        status = dispatch(call, out.size(), opcode);
        count(_device.memory.counts, opcode, status);
    }
    if (status == command_status::ok) {
        const std::size_t length = std::min(out.size(), answer.size());
        std::ranges::copy(std::span(answer).first(length), out.begin());
        std::ranges::fill(out.subspan(length), std::byte{0});
    } else {
        std::ranges::fill(out, std::byte{0});
    }
    write_status(out, status);
    if (call.cost_ns != 0) {
        _device.outside.spend(call.cost_ns);
    }
    if (_device.outside.tracing()) {
        std::string text = std::format("function {} uid {}: {}", which, uid, prm::decode_command(in, out));
        if (call.reason != nullptr) {
            text += std::format("  refused: {}\n", call.reason);
        }
        _device.outside.trace(text);
    }
    return status;
}

} // namespace ucxl::softhca
