#include "device_failure.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "fault_plan.h"
#include "prm/eq.h"
#include "prm/port.h"
#include "record_table.h"

namespace ucxl::softhca
{

namespace
{

using prm::event_type;
using prm::port_change;

void tell(environment& device, channel_record& channel, std::uint32_t type)
{
    device.memory.counts.async_events++;
    device.outside.notify(channel.owner.client, channel.route, type);
}

// Tells the contexts of the function that were not cut off before.
void tell_contexts(environment& device, function_id function, std::uint32_t type)
{
    const std::uint8_t now = device.memory.function_table[function].incarnation;
    for_each_live(device.memory.channels, [&](std::uint32_t, channel_record& channel) {
        if (channel.gets_device_events && channel.owner.function == function && channel.owner.incarnation == now) {
            tell(device, channel, type);
        }
    });
}

void end_channels(environment& device, function_id function, std::uint8_t incarnation)
{
    for_each_live(device.memory.channels, [&](std::uint32_t, channel_record& channel) {
        if (channel.owner.function == function && channel.owner.incarnation == incarnation) {
            device.outside.notify(channel.owner.client, channel.route, channel_ends);
        }
    });
}

// The contexts are told, as uverbs_async_event_release does, and are dead from here on. The end of a channel comes
// last: who reads it looks, without the lock, whether the contexts are dead.
void cut_off(environment& device, function_id function)
{
    tell_contexts(device, function, event_code(event_type::local_catastrophic));
    const std::uint8_t before =
        std::atomic_ref(device.memory.function_table[function].incarnation).fetch_add(1, std::memory_order_release);
    end_channels(device, function, before);
}

// The events are those of handle_port_change (infiniband/hw/mlx5/main.c). When a port comes back, the subnet manager
// sets it up anew, which may change its LID, and asks clients to register again, because the manager forgot them (IBTA
// vol. 1, 14.4.11, ClientReregister).
void take_port_down(environment& device, function_id function)
{
    function_record& record = device.memory.function_table[function];
    if (!record.port_up) {
        return;
    }
    record.port_up = false;
    device.memory.ports[function].link_downed++;
    tell_contexts(device, function, event_code(event_type::port_state_change, port_change::down));
}

void bring_port_up(environment& device, function_id function, std::uint16_t lid)
{
    function_record& record = device.memory.function_table[function];
    if (record.port_up) {
        return;
    }
    record.port_up = true;
    if (lid != 0 && lid != record.lid) {
        record.lid = lid;
        tell_contexts(device, function, event_code(event_type::port_state_change, port_change::lid));
    }
    tell_contexts(device, function, event_code(event_type::port_state_change, port_change::client_reregister));
    tell_contexts(device, function, event_code(event_type::port_state_change, port_change::active));
}

template <typename Action>
void for_each_function_of_card(arena& memory, function_id function, Action&& action)
{
    const std::uint32_t card = memory.function_table[function].device;
    for (std::uint32_t i = 0; i < memory.functions; ++i) {
        if (memory.function_table[i].device == card) {
            action(static_cast<function_id>(i), memory.function_table[i]);
        }
    }
}

void fail(environment& device, function_id first)
{
    for_each_function_of_card(device.memory, first, [&](function_id function, function_record& record) {
        if (record.condition == device_condition::working) {
            record.condition = device_condition::failed;
            tell_contexts(device, function, event_code(event_type::local_catastrophic));
        }
    });
}

void remove(environment& device, function_id first)
{
    for_each_function_of_card(device.memory, first, [&](function_id function, function_record& record) {
        if (record.condition != device_condition::removed) {
            record.condition = device_condition::removed;
            cut_off(device, function);
        }
    });
}

void recover(environment& device, function_id first)
{
    for_each_function_of_card(device.memory, first, [&](function_id function, function_record& record) {
        if (record.condition == device_condition::failed) {
            cut_off(device, function);
        }
        record.condition = device_condition::working;
    });
}

// The driver resets the function (pci_reset_function): its contexts end, and the new ones find it as it was.
void reset(environment& device, function_id function)
{
    if (device.memory.function_table[function].condition == device_condition::working) {
        cut_off(device, function);
    }
}

// The earliest change that is due, taken out of the schedule.
std::optional<device_change> take_due(change_schedule& schedule, std::uint64_t now_ns)
{
    device_change* earliest = nullptr;
    for (device_change& entry : schedule.entries) {
        if (entry.kind != change_kind::none && entry.at_ns <= now_ns &&
            (earliest == nullptr || entry.at_ns < earliest->at_ns)) {
            earliest = &entry;
        }
    }
    return earliest == nullptr ? std::nullopt : std::optional(std::exchange(*earliest, device_change{}));
}

} // namespace

change_kind change_of(fault_kind kind)
{
    switch (kind) {
    case fault_kind::fatal:
        return change_kind::fatal;
    case fault_kind::remove:
        return change_kind::remove;
    case fault_kind::reset:
        return change_kind::reset;
    case fault_kind::port_down:
        return change_kind::port_down;
    default:
        return change_kind::none;
    }
}

change_kind end_of(change_kind kind)
{
    switch (kind) {
    case change_kind::port_down:
        return change_kind::port_up;
    case change_kind::fatal:
    case change_kind::remove:
        return change_kind::recover;
    default:
        return change_kind::none;
    }
}

void find_next(change_schedule& schedule)
{
    schedule.next_ns = 0;
    for (const device_change& entry : schedule.entries) {
        if (entry.kind != change_kind::none && (schedule.next_ns == 0 || entry.at_ns < schedule.next_ns)) {
            schedule.next_ns = entry.at_ns;
        }
    }
}

void change_device(environment& device, const device_change& change)
{
    switch (change.kind) {
    case change_kind::none:
        return;
    case change_kind::port_down:
        return take_port_down(device, change.function);
    case change_kind::port_up:
        return bring_port_up(device, change.function, change.lid);
    case change_kind::fatal:
        return fail(device, change.function);
    case change_kind::remove:
        return remove(device, change.function);
    case change_kind::recover:
        return recover(device, change.function);
    case change_kind::reset:
        return reset(device, change.function);
    }
}

void schedule_change(environment& device, const device_change& change)
{
    change_schedule& schedule = device.memory.schedule;
    const auto room           = std::ranges::find(schedule.entries, change_kind::none, &device_change::kind);
    if (room != schedule.entries.end()) {
        *room = change;
        find_next(schedule);
        device.outside.wake_at(change.at_ns);
    }
}

void apply_due_changes(environment& device)
{
    change_schedule& schedule = device.memory.schedule;
    if (schedule.next_ns == 0) {
        return;
    }
    const std::uint64_t now_ns = device.outside.now_ns();
    if (now_ns < schedule.next_ns) {
        device.outside.wake_at(schedule.next_ns); // again: an earlier call was perhaps the one that was asked for
        return;
    }
    while (const auto due = take_due(schedule, now_ns)) {
        find_next(schedule);
        change_device(device, *due);
    }
    if (schedule.next_ns != 0) {
        device.outside.wake_at(schedule.next_ns);
    }
}

bool suffer_device_fault(environment& device, const ownership& owner, std::uint32_t opcode)
{
    if (device.memory.faults.rules.front().kind == fault_kind::none) {
        return is_dead(device.memory, owner);
    }
    for (const fault_kind kind : {fault_kind::port_down, fault_kind::fatal, fault_kind::remove, fault_kind::reset}) {
        const fault_rule* const rule = strike(device.memory, kind, opcode);
        if (rule == nullptr) {
            continue;
        }
        const change_kind change = change_of(kind);
        change_device(device, {.kind = change, .function = owner.function});
        if (rule->amount != 0) {
            const std::uint64_t end_ns = device.outside.now_ns() + rule->amount;
            schedule_change(device, {.kind = end_of(change), .function = owner.function, .at_ns = end_ns});
        }
    }
    return is_dead(device.memory, owner);
}

bool ends_an_object(prm::command opcode)
{
    switch (opcode) {
    case prm::command::destroy_mkey:
    case prm::command::destroy_cq:
    case prm::command::destroy_qp:
    case prm::command::destroy_srq:
    case prm::command::drain_dct:
    case prm::command::destroy_dct:
    case prm::command::destroy_rmp:
    case prm::command::destroy_umem:
    case prm::command::destroy_general_object:
    case prm::command::dealloc_flow_counter:
    case prm::command::dealloc_pd:
    case prm::command::dealloc_uar:
        return true;
    default:
        return false;
    }
}

bool is_pointless_on_failed(prm::command opcode)
{
    return opcode == prm::command::to_err_qp || opcode == prm::command::to_rst_qp;
}

} // namespace ucxl::softhca
