#include "bind.h"

namespace ucxl::mlx5
{

namespace
{

// Writes the requests to `requests`.
result<void> invalidate_keys(domain& shared, std::span<region* const> regions, std::vector<request_bytes>& requests)
{
    requests.clear();
    for (region* const one : regions) {
        one->append_invalidation(shared.queue.qpn(), requests);
    }
    shared.num_invalidations += requests.size();
    return shared.queue.execute(requests);
}

} // namespace

result<void> bind_all(std::span<region* const> regions, bool replace)
{
    domain& shared = regions.front()->owner();
    const std::lock_guard guard(shared.lock);
    std::vector<request_bytes> requests;
    for (region* const one : regions) {
        if (replace && one->length() != 0) {
            one->append_invalidation(shared.queue.qpn(), requests);
            ++shared.num_invalidations;
        }
        one->append_requests(shared.queue.qpn(), requests);
    }
    std::vector<request_bytes> undoing;
    undoing.reserve(regions.size()); // because undoing may not fail
    shared.num_binds += requests.size();
    result<void> done = shared.queue.execute(requests);
    if (done) {
        for (region* const one : regions) {
            one->adopt();
        }
        return done;
    }
    // Some keys may be bound. They must not show memory that others use next.
    const bool none_is_bound = invalidate_keys(shared, regions, undoing).has_value();
    for (region* const one : regions) {
        one->forget(none_is_bound);
    }
    return done;
}

result<void> invalidate_all(std::span<region* const> regions)
{
    domain& shared = regions.front()->owner();
    const std::lock_guard guard(shared.lock);
    std::vector<request_bytes> requests;
    const result<void> done = invalidate_keys(shared, regions, requests);
    for (region* const one : regions) {
        one->forget(done.has_value());
    }
    return done;
}

result<void> suspend(region& region)
{
    domain& shared = region.owner();
    const std::lock_guard guard(shared.lock);
    request_bytes request;
    // A queue that failed was made again, so it may work now.
    for (bool is_last = false;; is_last = true) {
        region.encode_suspension(shared.queue.qpn(), request);
        ++shared.num_invalidations;
        const auto done = shared.queue.execute(std::span(&request, 1));
        if (done) {
            region.set_bound(false);
        }
        if (done || is_last) {
            return done;
        }
    }
}

result<void> resume(region& region)
{
    domain& shared = region.owner();
    const std::lock_guard guard(shared.lock);
    request_bytes request;
    region.encode_resumption(shared.queue.qpn(), request);
    ++shared.num_binds;
    region.set_bound(true);
    const auto done = shared.queue.execute(std::span(&request, 1));
    if (!done) {
        region.encode_suspension(shared.queue.qpn(), request);
        region.set_bound(!shared.queue.execute(std::span(&request, 1)).has_value());
    }
    return done;
}

result<void> post_all(ibv_qp* qp, std::span<region* const> regions, std::uint64_t wr_id, bool signaled)
{
    domain& shared = regions.front()->owner();
    if (shared.queue.has_failed()) {
        return device_has_failed();
    }
    {
        const std::lock_guard guard(shared.lock);
        if (shared.checked_qp != qp || shared.checked_qpn != qp->qp_num) {
            UCXL_TRY(check_room(qp));
            shared.checked_qp  = qp;
            shared.checked_qpn = qp->qp_num;
        }
    }
    std::vector<request_bytes> requests;
    for (region* const one : regions) {
        one->append_requests(qp->qp_num, requests);
        one->expect_posting();
    }
    encode_key_fence(qp->qp_num, {.signaled = signaled}, requests.emplace_back());
    UCXL_TRY(post_raw(qp, requests, {.first = wr_id}));
    const std::lock_guard guard(shared.lock);
    for (region* const one : regions) {
        one->adopt_posted();
    }
    return {};
}

} // namespace ucxl::mlx5
