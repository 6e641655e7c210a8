// The receive that an arriving message consumes: the next entry of the queue pair's own receive queue or of its shared
// one.
#pragma once

#include <cstdint>

#include "queue_memory.h"
#include "softhca/core/keys/reference_list.h"

namespace ucxl::softhca
{

// The largest entry that the device reports (max_wqe_sz_rq). The rest of a longer entry is ignored.
inline constexpr std::size_t max_receive_bytes    = 512;
inline constexpr std::size_t max_receive_segments = max_receive_bytes / 16;

struct posted_receive {
    std::uint16_t index         = 0; // as the CQE names it
    std::uint16_t next          = 0; // of a shared queue: the next entry
    std::uint16_t counter_after = 0; // `consumed` after it was taken
    std::uint32_t pd            = 0; // the protection domain of its keys
    reference_list<max_receive_segments> data;
};

enum class received : std::uint8_t {
    one,
    none,
    broken, // the queue is not mapped
    gone,   // its process has ended
};

// Reads the next receive without consuming it.
received read_next_receive(environment& device, const qp_record& qp, posted_receive& next);

// The step that consumes it; the CQE is written with that step.
queue_step step_past(const qp_record& qp, std::uint32_t qpn, const posted_receive& taken);

// Called after a receive was consumed: sends the limit event of a shared queue when it is due.
void check_receive_limit(environment& device, const qp_record& qp);

} // namespace ucxl::softhca
