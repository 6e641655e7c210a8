// Completion queues: writing an entry where its owner polls for it, and the event if the owner asked for one.
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

#include "arena.h"
#include "prm/cqe.h"

namespace ucxl::softhca
{

struct completion {
    prm::storage<prm::cqe64> entry;
    std::array<std::byte, 64> data; // with cqe_format::inline_64: what stands in front of the entry
};

// Fills in the owner bit and writes the entry, its last byte after the others. A full CQ overflows: error event, and the
// CQ is lost. False where the CQ is not there, was lost, its process has ended or its memory is gone.
bool complete(environment& device, std::uint32_t cqn, completion& what);

// Entries that were written and not consumed yet, by the doorbell record. Nothing where that cannot be read.
std::optional<std::uint32_t> entries_waiting(environment& device, const cq_record& cq);

// The request of a CQ doorbell: an event at the next entry, or now if there is one already behind `consumer`. A request
// with the sequence number of the last event was late and is ignored. The CQ is the caller's to check.
void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer);

} // namespace ucxl::softhca
