// What a queue pair does: send queues are executed by the process they belong to, which does the responder's part in
// the peer's memory too, so that the peer's process need not run.
//
// A WQE is executed completely before the next one of its queue begins, so every fence a WQE can ask for holds without
// being looked at. It is executed only while the records of both ends are under the one lock, so both see one order of
// operations. What moves many bytes or many pieces is executed in turns, and others have the lock in between.
#pragma once

#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

// Executes what the send queue has, up to `budget` WQEs and what one turn allows, as far as the peer lets it. Returns
// whether any WQE was executed, in part or whole, or completed. Where it has to wait, send_queue_state says until when
// and host::wake_at was called; for its next turn (requester_wait::turn) the caller comes again. Under the lock. Reads
// the producer counter from the doorbell record. Only the process that owns the queue pair does this.
bool run_send_queue(environment& device, std::uint32_t qpn, unsigned budget);

// To the state error, with all that was posted flushed to the CQs; `syndrome` events are the caller's. Idempotent.
void fail_queue_pair(environment& device, std::uint32_t qpn);

// To the state send error, where the sends are flushed and receiving goes on: how unreliable services fail.
void fail_send_queue(environment& device, std::uint32_t qpn);

// Flushes what was posted since to a queue pair in error. Returns whether there was anything.
bool flush_queue_pair(environment& device, std::uint32_t qpn);

} // namespace ucxl::softhca
