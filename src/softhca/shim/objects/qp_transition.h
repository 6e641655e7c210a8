// Which attributes a queue pair takes with a change of its state, as the specification of verbs says and the kernel
// checks; and which command of the device does the change.
#pragma once

#include <cstdint>
#include <optional>

#include "prm/command.h"
#include "prm/qpc.h"

namespace ucxl::softhca
{

// States are IBV_QPS_*, attributes IBV_QP_*.
bool may_modify(std::uint32_t from, std::uint32_t to, prm::qp_service service, std::uint32_t attributes);

// Nothing: the device has no such transition.
std::optional<prm::command> transition_command(std::uint32_t from, std::uint32_t to);

// opt_param_mask of that command for those attributes.
std::uint32_t optional_fields(prm::command transition, prm::qp_service service, std::uint32_t attributes);

} // namespace ucxl::softhca
