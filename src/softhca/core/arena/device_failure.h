// Devices that fail, leave the bus and come back, and ports that go down and up.
//
// After a failure of the firmware (change_kind::fatal) the device behaves as a card whose driver has given up on it:
// processes get the event local_catastrophic, doorbells and messages from others are dropped, commands that destroy
// objects succeed, and all others are refused. That is what Linux does in the state MLX5_DEVICE_STATE_INTERNAL_ERROR
// (mlx5_internal_err_ret_value in drivers/net/ethernet/mellanox/mlx5/core/cmd.c). Completions of the posted WQEs do not
// come: the driver flushes queues of the kernel only (mlx5_ib_handle_internal_error in infiniband/hw/mlx5/main.c).
//
// A card that leaves the bus, and one that recovers, cuts off all contexts (ib_uverbs_remove_one, disassociation, in
// drivers/infiniband/core/uverbs_main.c): their event channels end, and their objects can only be destroyed. Objects of
// a context that was cut off stay in the tables until then. They are dead because their incarnation is not that of the
// function.
#pragma once

#include "arena.h"
#include "prm/command.h"

namespace ucxl::softhca
{

// Whether the device executes nothing for that owner any more.
inline bool is_dead(const arena& memory, const ownership& owner)
{
    const function_record& function = memory.function_table[owner.function];
    return function.condition != device_condition::working || function.incarnation != owner.incarnation;
}

// A port that is down neither sends nor receives, not even from itself (IBTA vol. 1, 7.2: packets other than those of
// subnet management are discarded unless the port is active).
inline bool port_is_up(const arena& memory, function_id function)
{
    return memory.function_table[function].port_up;
}

// The change that a fault brings about, and the one that undoes it. `none` for others.
change_kind change_of(fault_kind kind);
change_kind end_of(change_kind kind);

// Applies the change and tells those it concerns. A change to what already is does nothing.
void change_device(environment& device, const device_change& change);

// The same at a time of the host's clock. A schedule that is full drops the change.
void schedule_change(environment& device, const device_change& change);

// Sets next_ns.
void find_next(change_schedule& schedule);

// Applies the changes whose time has come. Cheap when there are none.
void apply_due_changes(environment& device);

// Counts a WQE of the function for the rules of --fault about devices, and applies the change of a rule that is hit.
// Returns whether the device is dead now.
bool suffer_device_fault(environment& device, const ownership& owner, std::uint32_t opcode);

// Whether a failed device still executes the command, so that the kernel can clean up.
bool ends_an_object(prm::command opcode);

// Whether the kernel says that it succeeded, without the device.
bool is_pointless_on_failed(prm::command opcode);

} // namespace ucxl::softhca
