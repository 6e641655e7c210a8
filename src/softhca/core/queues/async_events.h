// Sends asynchronous events of queue pairs and shared receive queues to their owners.
#pragma once

#include "prm/eq.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

inline void notify_queue_pair(environment& device, qp_record& qp, prm::event_type type)
{
    device.memory.counts.async_events++;
    device.outside.notify(qp.owner.client, qp.events, static_cast<std::uint32_t>(type));
}

inline void notify_shared_receive_queue(environment& device, srq_record& srq, prm::event_type type)
{
    device.memory.counts.async_events++;
    device.outside.notify(srq.owner.client, srq.events, static_cast<std::uint32_t>(type));
}

} // namespace ucxl::softhca
