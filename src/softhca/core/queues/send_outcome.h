// What follows the execution of a send WQE: its CQE, and the states of both queue pairs.
#pragma once

#include <cstdint>

#include "answer.h"
#include "completion.h"
#include "send_request.h"

namespace ucxl::softhca
{

// A send WQE that was executed.
struct executed_send {
    prm::wqe_opcode opcode = prm::wqe_opcode::nop;
    std::uint16_t index    = 0;
    bool signaled          = false;
    bool told_of_flush     = true;
    std::uint16_t stream   = 0;     // channel of a DCI
    bool wakes             = false; // its CQE fires an event for solicited completions
};

inline executed_send as_executed(const send_request& request)
{
    using prm::wqe_completion;
    return {.opcode        = request.opcode,
            .index         = request.index,
            .signaled      = request.signaled(),
            .told_of_flush = request.completion != wqe_completion::on_first_error,
            .stream        = request.stream,
            .wakes         = request.completion == wqe_completion::always_event};
}

// Writes the CQE of a success if the WQE asks for one. A WQE of a stream channel in error is flushed instead.
void finish_send(environment& device, qp_record& qp, std::uint32_t qpn, const executed_send& sent, completion& cqe);

// Writes the CQE of an error. A reliable connection fails at the first error, an initiator of dynamic connections as
// dc_stream.h says; unreliable services only stop sending.
void fail_send(environment& device, qp_record& qp, std::uint32_t qpn, const executed_send& sent,
               prm::cqe_syndrome syndrome);

// The queue pair cannot report what became of its WQEs: its CQ or its ring is lost.
void lose_send_queue(environment& device, qp_record& qp, std::uint32_t qpn);

// Fails the peer if the answer says so. Called after the requester has completed the WQE, because a queue pair that is
// its own peer completes the refused WQE before it flushes the others.
void settle_peer(environment& device, std::uint32_t peer_qpn, const answer& result);

} // namespace ucxl::softhca
