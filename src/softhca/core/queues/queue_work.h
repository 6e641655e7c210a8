// Executes queue pairs. The owner of a send queue executes it and also does the responder's part in the memory of the
// peer, so the peer's process need not run.
//
// A WQE is executed completely before the next one of its queue starts, so every fence of a WQE holds. It is executed
// under the one lock of both records, so both ends see the same order of operations. A WQE that moves many bytes or
// pieces is executed in turns, and others get the lock in between.
#pragma once

#include <cstdint>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// Executes the send queue: at most `budget` WQEs and what one turn allows, as far as the peer lets it. Returns whether
// any WQE was executed, in part or as a whole, or completed. When the queue has to wait, send_queue_state says until
// when and host::wake_at was called; for its next turn (requester_wait::turn) the caller calls again. Under the lock.
// Reads the producer counter from the doorbell record. Only the process that owns the queue pair may call it.
bool run_send_queue(environment& device, std::uint32_t qpn, unsigned budget);

// Changes the queue pair to the state error and flushes all posted WQEs to the CQs. The caller sends the event.
// Idempotent.
void fail_queue_pair(environment& device, std::uint32_t qpn);

// Changes the queue pair to the state send error: its sends are flushed, and receiving continues. Unreliable services
// fail like this.
void fail_send_queue(environment& device, std::uint32_t qpn);

// Flushes the WQEs posted to a queue pair in error. Returns whether there were any.
bool flush_queue_pair(environment& device, std::uint32_t qpn);

} // namespace ucxl::softhca
