// The queue pair that binds keys: connected to itself, used for nothing else. After an error it is made anew.
//
// Thread safety: none, the domain's lock guards it.
#pragma once

#include <cstdint>
#include <span>

#include "failure.h"
#include "umr_request.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class bind_queue
{
public:
    static outcome<bind_queue> open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth);

    std::uint32_t qpn() const { return _qp->qp_num; }
    // Of one work request, in bytes.
    std::size_t max_request() const { return _max_request; }

    // Posts all requests, as many at once as the queue holds, and waits until they are done. The last one of each
    // batch is made signaled. After a failure no request is under way, and the queue can be used again.
    outcome<void> execute(std::span<request_bytes> requests);

private:
    bind_queue() = default;

    outcome<void> make();
    outcome<void> connect();
    outcome<void> post(std::span<request_bytes> requests);
    outcome<void> wait();

    ibv_pd* _pd              = nullptr;
    std::uint8_t _port       = 1;
    std::uint32_t _depth     = 0;
    std::size_t _max_request = 0;
    cq_owner _cq; // outlives the queue pair
    qp_owner _qp;
};

// Marks a finished request as one that raises a completion.
void make_signaled(request_bytes& request);

// Whether a queue pair takes raw requests, and then posts them: all or none.
outcome<void> post_raw(ibv_qp* qp, std::span<const request_bytes> requests, std::uint64_t wr_id);

} // namespace ucxl::mlx5
