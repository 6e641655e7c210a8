// The receive that an arriving message takes: the next entry of the queue pair's own receive queue or of its shared
// one.
#pragma once

#include <cstdint>

#include "queue_memory.h"
#include "reference_list.h"

namespace ucxl::softhca
{

// The largest entry that the device reports (max_wqe_sz_rq); of a longer one the rest is not used.
inline constexpr std::size_t max_receive_bytes    = 512;
inline constexpr std::size_t max_receive_segments = max_receive_bytes / 16;

struct posted_receive {
    std::uint16_t index         = 0; // as completions name it
    std::uint16_t next          = 0; // of a shared queue: the entry after it
    std::uint16_t counter_after = 0; // consumed when it was taken
    std::uint32_t pd            = 0; // that its keys belong to
    reference_list<max_receive_segments> data;
};

enum class received : std::uint8_t {
    one,
    none,
    broken, // the queue is not there
    gone,   // its process is not there
};

// The receive that is next, still to be taken.
received read_next_receive(environment& device, const qp_record& qp, posted_receive& next);

// How its queue moves on when it is taken; completions are written with that.
queue_step step_past(const qp_record& qp, std::uint32_t qpn, const posted_receive& taken);

// After one was taken: the limit event of a shared queue where its time has come.
void check_receive_limit(environment& device, const qp_record& qp);

} // namespace ucxl::softhca
