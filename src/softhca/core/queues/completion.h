// Completion queues: writes a CQE where its owner polls for it, and the event if the owner asked for one.
//
// A single store of the last byte gives the CQE to its owner. After a death in the middle that byte also says whether
// the CQE was written: the step that belongs to it, such as consuming the receive, is then taken or not.
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

#include "prm/cqe.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

struct completion {
    prm::storage<prm::cqe64> entry;
    std::array<std::byte, 64> data; // with cqe_format::inline_64: the bytes before the entry
};

// Sets the owner bit and writes the CQE; the queue that `step` names takes the step. A full CQ overflows: it gets an
// error event and is lost. Returns false, without the step, when there is no such CQ, it was lost, its process has
// ended or its memory is gone. The adversarial order may hold the CQE back: then the step is taken at once.
bool complete(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step = {});

// The same in two halves, for a caller that writes the CQE together with its data. Nothing else may be completed in
// between.
class completion_write
{
public:
    // The pieces to write after the data, in this order. The completion must stay in place.
    std::span<const piece> to() const { return std::span(_to).first(_count); }
    std::span<const piece> from() const { return std::span(_from).first(_count); }

    // False when nothing can be written; then end() and abandon() must not be called.
    bool begin(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step);

    // The pieces were moved.
    void end(environment& device, const completion& cqe);

    // The pieces were not moved; the CQ is unchanged.
    void abandon(environment& device);

private:
    std::array<piece, 3> _to;
    std::array<piece, 3> _from;
    std::size_t _count = 0;
};

// Writes the CQE that the adversarial order has held back in that CQ, if there is one.
void release_completion(environment& device, std::uint32_t cqn);

// The same for both CQs of a queue pair or DC target that is about to be reset or destroyed: libmlx5 drops the CQEs of
// what it destroys, and knows none that comes later.
void release_completions(environment& device, const qp_record& qp);

// Takes the step of a queue without a CQE.
void take_step(arena& memory, const queue_step& step);

// Finishes or drops the CQE that a process died in.
void repair_completion(environment& device);

// The number of CQEs not consumed yet, by the doorbell record. Nothing when that cannot be read.
std::optional<std::uint32_t> entries_waiting(environment& device, const cq_record& cq);

// Executes a CQ doorbell: an event at the next CQE, or now if there is one after `consumer`. A request with the
// sequence number of the last event is late and ignored. The caller checks that the CQ exists.
void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer);

} // namespace ucxl::softhca
