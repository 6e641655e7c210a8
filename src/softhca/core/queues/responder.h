// The responder's part of a request on a connection. The requester's process does it in the memory of the responder.
#pragma once

#include <cstdint>

#include "answer.h"
#include "completion.h"
#include "piece_order.h"
#include "receive_queue.h"
#include "send_request.h"

namespace ucxl::softhca
{

// A request and its sender.
struct exchange {
    environment& device;
    qp_record& qp;
    std::uint32_t qpn;
    const send_request& request;
    const piece_order* pieces = nullptr; // of the adversarial order

    key_user user() const { return {qp.owner.function, qp.pd, qpn}; }

    // The count of bytes that earlier turns moved.
    std::uint64_t* moved() const { return &qp.send.progress.moved; }
};

// The queue pair that answers, or the target of a dynamic connection.
struct responder {
    qp_record& qp;
    std::uint32_t qpn;

    key_user user() const { return {qp.owner.function, qp.pd, qpn}; }
};

// The next receive of a shared queue may go to another sender between two turns, so such a message is moved at once.
inline std::uint64_t* turns_of(const exchange& sender, const responder& peer)
{
    return peer.qp.srq == 0 ? sender.moved() : nullptr;
}

answer deliver_send(const exchange& sender, const responder& peer);
answer deliver_write(const exchange& sender, const responder& peer);

// The CQE gets the length, and the data when it goes there.
answer serve_read(const exchange& sender, const responder& peer, completion& cqe);
answer serve_atomic(const exchange& sender, const responder& peer, completion& cqe);

// Checks the sender's own memory when nobody takes the message: it was sent all the same.
answer unanswered(const exchange& sender);

// The next receive of the responder, or why there is none.
answer find_receive(const exchange& sender, const responder& peer, posted_receive& next);

// A message and the receive that it consumes.
struct arrival {
    const posted_receive& taken;
    prm::cqe_opcode opcode;
    std::uint64_t bytes; // as the CQE says
};

// Completes a receive, with all of the CQE that describes the sender. The receive is consumed in any case. False when
// the CQ is lost or its process has ended.
bool complete_receive(const exchange& sender, const responder& peer, completion& cqe, const arrival& message);

// Moves the data (with `in_turns`: the rest of it) and the CQE in one host::move. Returns false when that fails, for
// any reason: then nothing was consumed or completed, and the caller does one after the other to find the reason.
bool deliver_at_once(const exchange& sender, const responder& peer, const arrival& message, completion& cqe,
                     const memory_side& to, std::span<const reference> data, std::uint64_t length,
                     std::uint64_t* in_turns = nullptr);

// The fields of the queue pair's context about data in CQEs.
prm::scatter_to_cqe response_scatter(const qp_record& qp);
prm::scatter_to_cqe request_scatter(const qp_record& qp);

} // namespace ucxl::softhca
