// The events of completion queues.
#pragma once

#include "arena.h"

namespace ucxl::softhca
{

// An entry was written, the last one counted in `producer`: counts it for requests of solicited ones, and tells the
// owner if that was asked for.
void announce_completion(environment& device, cq_record& cq, bool solicited);

// The queue is lost, and its owner is told.
void lose_completion_queue(environment& device, cq_record& cq);

} // namespace ucxl::softhca
