// Doorbells without traps. A context that was opened through us gets operations that report posted WQEs to the device,
// so its doorbell page need not trap. A trap costs microseconds for every doorbell.
//
// A program that takes the address of a doorbell page (mlx5dv_init_obj, DEVX UARs) stores there itself: that page traps
// from then on.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ucxl::softhca
{

// `uar`: the doorbell page of the context's queues, 0 for none. Leaves contexts unchanged whose operations are not
// those of the known libmlx5.
void take_context(ibv_context* context, std::uint32_t uar);
void release_context(const ibv_context* context);

// Replaces the extended operations of a queue pair of such a context; libmlx5 sets them when the queue pair becomes
// ready to send.
void take_queue_pair(ibv_qp_ex* queue_pair);

// The program has the address of this page and stores there itself.
void give_page_away(const void* address);

} // namespace ucxl::softhca
