// From the opcode of a command to its handler.
#include <algorithm>

#include "call.h"
#include "softhca/core/arena/cost.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/fault_plan.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

const command_entry* find_entry(prm::command opcode)
{
    for (const command_entries family : command_families()) {
        const auto found = std::ranges::find(family, opcode, &command_entry::opcode);
        if (found != family.end()) {
            return &*found;
        }
    }
    return nullptr;
}

command_status dispatch(command_call& call, std::size_t output_bytes, prm::command opcode)
{
    const command_entry* const found = find_entry(opcode);
    if (found == nullptr) {
        return call.refuse(command_status::bad_operation, "no such command in this model");
    }
    if (call.input.size() < found->input_bytes) {
        return call.refuse(command_status::bad_input_length, "input mailbox too short");
    }
    if (output_bytes < found->output_bytes) {
        return call.refuse(command_status::bad_output_length, "output mailbox too short");
    }
    const device_condition condition = call.caller().condition;
    if (condition != device_condition::working && is_pointless_on_failed(opcode)) {
        return command_status::ok;
    }
    if (condition != device_condition::working && !ends_an_object(opcode)) {
        return call.refuse(command_status::internal_error, "the device has failed");
    }
    if (const fault_rule* const rule = strike(call.memory(), fault_kind::command, std::to_underlying(opcode))) {
        return call.refuse(static_cast<command_status>(rule->status), "--fault");
    }
    call.cost_ns = command_cost(static_cast<card_times>(call.memory().times), opcode);
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

} // namespace

std::array<command_entries, 10> command_families()
{
    return {qp_commands(),  qp_transition_commands(), mkey_commands(),     cq_commands(),   srq_commands(),
            dct_commands(), vhca_commands(),          resource_commands(), port_commands(), capability_commands()};
}

command_status execute_command(command_call& call, std::size_t output_bytes, prm::command opcode)
{
    apply_due_changes(call.device);
    const command_status status = dispatch(call, output_bytes, opcode);
    count(call.memory().counts, opcode, status);
    return status;
}

} // namespace ucxl::softhca
