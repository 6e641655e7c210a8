// The attributes of verbs that each change of a queue pair's state requires and allows, as the verbs specification says
// and the kernel checks, and the device's command for the change.
#pragma once

#include <cstdint>
#include <optional>

#include "prm/command.h"
#include "prm/qpc.h"

namespace ucxl::softhca
{

// States are IBV_QPS_*, attributes IBV_QP_*.
std::uint32_t verbs_state(prm::qp_state state);
bool may_modify(std::uint32_t from, std::uint32_t to, prm::qp_service service, std::uint32_t attributes);

// Nothing when the device has no such transition.
std::optional<prm::command> transition_command(std::uint32_t from, std::uint32_t to);

// opt_param_mask of that command for those attributes.
std::uint32_t optional_fields(prm::command transition, prm::qp_service service, std::uint32_t attributes);

} // namespace ucxl::softhca
