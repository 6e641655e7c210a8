// Completion queues: writing an entry where its owner polls for it, and the event if the owner asked for one.
//
// Its last byte makes an entry the owner's, in one store. That byte also decides, after a death in the middle, whether
// the entry was written: what belongs to it, such as the receive it is about, moves on with it or not at all.
//
//     completion done;
//     (*done.entry).put<cqe_opcode::requester>(cqe64::opcode);
//     ...
//     if (!complete(device, qp.send_cq, done)) ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "arena.h"
#include "prm/cqe.h"

namespace ucxl::softhca
{

struct completion {
    prm::storage<prm::cqe64> entry;
    std::array<std::byte, 64> data; // with cqe_format::inline_64: what stands in front of the entry
};

// Fills in the owner bit and writes the entry; the queue that `step` names moves on with it. A full CQ overflows: error
// event, and the CQ is lost. False where the CQ is not there, was lost, its process has ended or its memory is gone;
// the step was not taken then.
bool complete(environment& device, std::uint32_t cqn, completion& what, const queue_step& step = {});

// The same in two halves, for a caller that writes the entry together with the data it is about. Between them nothing
// else may be completed.
class completion_write
{
public:
    // What was to be written, behind the data and in this order; the completion has to stay where it is.
    std::span<const piece> to() const { return std::span(_to).first(_count); }
    std::span<const piece> from() const { return std::span(_from).first(_count); }

    // False where nothing can be written; there is no second half then.
    bool begin(environment& device, std::uint32_t cqn, completion& what, const queue_step& step);

    // The pieces were moved.
    void end(environment& device, const completion& what);

    // They were not; the CQ is as before.
    void abandon(environment& device);

private:
    std::array<piece, 3> _to;
    std::array<piece, 3> _from;
    std::size_t _count = 0;
};

// Lets a queue move on without a completion.
void take_step(arena& memory, const queue_step& step);

// Finishes or forgets the completion that somebody died in.
void repair_completion(environment& device);

// Entries that were written and not consumed yet, by the doorbell record. Nothing where that cannot be read.
std::optional<std::uint32_t> entries_waiting(environment& device, const cq_record& cq);

// The request of a CQ doorbell: an event at the next entry, or now if there is one already behind `consumer`. A request
// with the sequence number of the last event was late and is ignored. The CQ is the caller's to check.
void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer);

} // namespace ucxl::softhca
