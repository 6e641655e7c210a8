// The other side's part of a request on a connection, done by the requester's process in the memory of the other one.
#pragma once

#include <cstdint>

#include "answer.h"
#include "completion.h"
#include "receive_queue.h"
#include "send_request.h"

namespace ucxl::softhca
{

// A request and who makes it.
struct exchange {
    environment& device;
    qp_record& qp;
    std::uint32_t qpn;
    const send_request& request;

    key_user user() const { return {qp.owner.function, qp.pd, qpn}; }

    // For what is moved in turns.
    std::uint64_t* moved() const { return &qp.send.moved; }
};

// The side that answers.
struct responder {
    qp_record& qp;
    std::uint32_t qpn;

    key_user user() const { return {qp.owner.function, qp.pd, qpn}; }
};

// A receive of a shared queue may become another sender's between two turns: such a message is moved in one.
inline std::uint64_t* turns_of(const exchange& of, const responder& to)
{
    return to.qp.srq == 0 ? of.moved() : nullptr;
}

answer deliver_send(const exchange& of, const responder& to);
answer deliver_write(const exchange& of, const responder& to);

// The completion gets the length, and the data where it is to be in there.
answer serve_read(const exchange& of, const responder& from, completion& what);
answer serve_atomic(const exchange& of, const responder& at, completion& what);

// A message that nobody takes was sent all the same, so its own memory has to be there.
answer unanswered(const exchange& of);

// The next receive of the responder, or why there is none.
answer find_receive(const exchange& of, const responder& at, posted_receive& next);

// A message that has found its receive.
struct arrival {
    const posted_receive& taken;
    prm::cqe_opcode opcode;
    std::uint64_t bytes; // as its completion says
};

// The completion of a receive, with everything about the sender that has a place in it. The receive is taken in any
// case; false where the completion queue is lost or its process has ended.
bool complete_receive(const exchange& of, const responder& at, completion& what, const arrival& message);

// The data, or with `in_turns` what is left of it, and its completion in one host::move. False where that did not work,
// for whatever reason: nothing was taken or completed then, and doing one after the other tells the reason.
bool deliver_at_once(const exchange& of, const responder& at, const arrival& message, completion& what,
                     const memory_side& to, std::span<const reference> data, std::uint64_t length,
                     std::uint64_t* in_turns = nullptr);

// The bits of the queue pair's context about data in completions.
prm::scatter_to_cqe response_scatter(const qp_record& qp);
prm::scatter_to_cqe request_scatter(const qp_record& qp);

} // namespace ucxl::softhca
