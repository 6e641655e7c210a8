// Completion queues: writing an entry where its owner polls for it, and the event if the owner asked for one.
#pragma once

#include <cstdint>

#include "arena.h"
#include "prm/cqe.h"

namespace ucxl::softhca
{

struct completion {
    prm::storage<prm::cqe64> entry;
    bool solicited = false;
    bool error     = false;
};

// Fills in the owner bit and writes the entry, its last byte after the others. A full CQ overflows: error event, and the
// CQ is lost. False where the CQ is not there, its process has ended or its memory is gone.
bool complete(environment& device, std::uint32_t cqn, completion& entry);

// The request of a CQ doorbell: an event at the next entry, or now if there is one already behind `consumer`.
void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer);

} // namespace ucxl::softhca
