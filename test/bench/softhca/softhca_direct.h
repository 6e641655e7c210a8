// A queue pair taken apart, as UCX uses one: work requests are written to the ring and the doorbell is stored by the
// program itself, completions are read from the ring of the completion queue. Not through libibverbs, so that on
// softhca every doorbell traps.
#pragma once

#include "support/verbs_endpoint.h"

#include <infiniband/mlx5dv.h>

namespace ucxl::bench
{

class direct_queue
{
public:
    // Of a connected endpoint that nothing was posted to and that is used in no other way from then on.
    explicit direct_queue(test::endpoint& of);

    // Writes 8 bytes from the own buffer to the peer's and waits until that is completed.
    void write_and_wait(const test::address& own, const test::address& peer);

private:
    void store_request(const test::address& own, const test::address& peer);
    void ring_doorbell(const void* control);
    void wait();

    mlx5dv_qp _queue{};
    mlx5dv_cq _completions{};
    std::uint32_t _number   = 0;
    std::uint16_t _posted   = 0;
    std::uint32_t _consumed = 0;
};

} // namespace ucxl::bench
