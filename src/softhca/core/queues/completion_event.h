// The events of completion queues.
#pragma once

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// A CQE was written, the last one that `producer` counts: records solicited CQEs, and sends the event if it was asked
// for.
void announce_completion(environment& device, cq_record& cq, bool solicited);

// The CQ is lost: tells its owner.
void lose_completion_queue(environment& device, cq_record& cq);

} // namespace ucxl::softhca
