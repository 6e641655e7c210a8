// The way without traps. A context that was opened through us gets operations that tell the device what they posted, so
// its doorbell page need not trap: a page that does costs microseconds for every doorbell.
//
// Who takes the address of a doorbell page (mlx5dv_init_obj, DEVX UARs) stores there himself: that page traps from then
// on.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ucxl::softhca
{

// `uar`: the page of the context's queues, 0 for none. Leaves contexts alone that are not of libmlx5 as known.
void take_context(ibv_context* context, std::uint32_t uar);
void release_context(const ibv_context* context);

// The extended operations of a queue pair of such a context: libmlx5 sets them when the queue pair gets ready to send.
void take_queue_pair(ibv_qp_ex* queue_pair);

// Whoever has the page at this address stores there himself.
void give_page_away(const void* address);

} // namespace ucxl::softhca
