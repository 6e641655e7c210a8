// Finds the target of a dynamic connection (DCT) that a WQE of an initiator (DCI) names.
//
// Each WQE has the address, the number and the access key of its target. A connection lasts as long as its WQE: nothing
// of it stays behind, so a target never fails. A refused request fails the initiator only, and the target's owner gets
// an event.
#pragma once

#include <cstdint>

#include "send_request.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// The number of the target; 0 for none.
std::uint32_t target_of(const send_request& request);

// The target, if it is active and accepts the request. Null: nobody answers. A wrong access key is counted, and told to
// the owner of a target that was armed for it.
qp_record* find_target(environment& device, const send_request& request);

} // namespace ucxl::softhca
