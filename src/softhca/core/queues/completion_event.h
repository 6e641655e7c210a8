// The events of completion queues.
#pragma once

#include "prm/eq.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// A CQE was written, the last one that `producer` counts: records solicited CQEs, and sends the event if it was asked
// for.
void announce_completion(environment& device, cq_record& cq, bool solicited);

// The CQ is lost: tells its owner.
void lose_completion_queue(environment& device, cq_record& cq, prm::cq_error_reason reason);

} // namespace ucxl::softhca
