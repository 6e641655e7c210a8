// The queue pair that binds keys, connected to itself. After an error it is made again, unless the device itself has
// failed: then nothing is tried any more.
//
// Thread safety: the domain's lock guards it, except has_failed() and give_up(), which any thread may call at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sys/error.h"
#include "umr_request.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class bind_queue
{
public:
    // `atomics`: for attempt_add(). A card without atomic operations refuses a queue pair for them.
    static result<bind_queue> open(ibv_pd* pd, std::uint8_t port, std::uint32_t depth, bool atomics);

    std::uint32_t qpn() const { return _qp->qp_num; }
    // Requests under way at once: what was asked for, or less where the device has less room.
    std::uint32_t depth() const { return _depth; }
    // The longest work request, in bytes.
    std::size_t max_request() const { return _max_request; }

    // Posts all requests, as many at once as the queue holds, and waits until they are done. The last request of each
    // batch is signaled. After a failure no request is pending, and the queue can be used again.
    result<void> execute(std::span<request_bytes> requests);

    // For operations that the device may not support. Returns false if the work completed with an error, which
    // last_refusal() tells then.
    result<bool> attempt(std::span<request_bytes> requests);
    result<bool> attempt_write(const ibv_sge& from, std::uint64_t to, std::uint32_t rkey);
    result<bool> attempt_add(const ibv_sge& result, std::uint64_t to, std::uint32_t rkey, std::uint64_t addend);

    // Empty if there was none.
    const std::string& last_refusal() const { return _refusal; }
    void forget_refusal() { _refusal.clear(); }

    // The device itself has failed (IBV_EVENT_DEVICE_FATAL). All waiting calls end.
    void give_up() const { _failed->store(true, std::memory_order_relaxed); }
    bool has_failed() const { return _failed->load(std::memory_order_relaxed); }

private:
    using clock = std::chrono::steady_clock;

    bind_queue() = default;

    result<void> make();
    // Before anything is posted: a queue that was lost is made again. Errors: io_error, if the device has failed, too.
    result<void> renew();
    result<void> connect(ibv_qp* qp) const;
    result<void> post(std::span<request_bytes> requests);
    result<bool> attempt(void (*fill)(ibv_qp_ex*, const ibv_sge&, std::uint64_t, std::uint32_t, std::uint64_t),
                         const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey, std::uint64_t operand);
    result<ibv_wc> finish(const result<void>& posted);
    bool note(const ibv_wc& done, std::string_view what);
    result<ibv_wc> wait();
    result<void> keep_waiting(clock::time_point since);

    ibv_pd* _pd              = nullptr;
    std::uint8_t _port       = 1;
    bool _atomics            = false;
    std::uint32_t _depth     = 0;
    std::size_t _max_request = 0;
    std::string _refusal;
    clock::time_point _asked; // when the device was last asked whether it still answers
    std::unique_ptr<std::atomic<bool>> _failed = std::make_unique<std::atomic<bool>>(false);
    bool _is_lost                              = false; // the queue failed, and there was no other one yet
    cq_owner _cq;                                       // outlives the queue pair
    qp_owner _qp;
};

// Makes the finished request raise a completion.
void make_signaled(request_bytes& request);

// The error of every call once the device has failed.
std::unexpected<error> device_has_failed();

// Whether a queue pair of the caller has room for our requests. libmlx5 counts requests and not their blocks, so too
// long ones would overwrite others. Costs a system call.
result<void> check_room(ibv_qp* qp);

// The wr_id of the first of several requests, and by how much that of each next one is larger.
struct work_ids {
    std::uint64_t first;
    std::uint64_t step = 0;
};

// Posts all requests or none. Fails if the queue pair takes no raw requests.
result<void> post_raw(ibv_qp* qp, std::span<const request_bytes> requests, work_ids ids);

} // namespace ucxl::mlx5
