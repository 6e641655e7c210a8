#include "direct_verbs.h"

#include "softhca/shim/process/device_process.h"
#include "softhca/shim/system/wake_timer.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace ucxl::softhca
{
namespace
{

struct taken_context {
    std::atomic<const ibv_context*> context = nullptr;
    std::atomic<std::uint32_t> uar          = 0;
};

constexpr std::size_t most_contexts = 256;
std::array<taken_context, most_contexts> contexts;

constinit std::mutex taking;
// There is one libmlx5, so there is one set of operations; known once a context was taken.
ibv_context_ops original                                     = {};
constinit std::atomic<int (*)(ibv_qp_ex*)> original_complete = nullptr;

// Arming a CQ takes two steps: the call, and reading what it stored.
constinit std::mutex arming;

// A poller that finds nothing progresses waiting queues now and then. The timer does that as well, but may get no time
// on a busy CPU.
constexpr unsigned empty_polls                = 1024;
constinit thread_local unsigned found_nothing = 0;

constexpr std::size_t arm_offset = 0x20; // of the CQ doorbell in its page

taken_context* find(const ibv_context* context)
{
    for (taken_context& known : contexts) {
        if (known.context.load(std::memory_order_acquire) == context) {
            return &known;
        }
    }
    return nullptr;
}

void posted(std::uint32_t qpn)
{
    if (device_process* const process = device_process::current()) {
        process->posted(qpn);
    }
}

int post_send(ibv_qp* queue_pair, ibv_send_wr* requests, ibv_send_wr** bad)
{
    const int failed = original.post_send(queue_pair, requests, bad);
    posted(queue_pair->qp_num);
    return failed;
}

int bind_window(ibv_qp* queue_pair, ibv_mw* window, ibv_mw_bind* binding)
{
    const int failed = original.bind_mw(queue_pair, window, binding);
    posted(queue_pair->qp_num);
    return failed;
}

int complete(ibv_qp_ex* queue_pair)
{
    const int failed = original_complete.load(std::memory_order_relaxed)(queue_pair);
    posted(queue_pair->qp_base.qp_num);
    return failed;
}

int poll(ibv_cq* queue, int room, ibv_wc* into)
{
    const int found = original.poll_cq(queue, room, into);
    if (found != 0) {
        found_nothing = 0;
    } else if (++found_nothing >= empty_polls) {
        found_nothing = 0;
        if (device_process* const process = device_process::current()) {
            process->progress();
        }
    }
    return found;
}

int arm(ibv_cq* queue, int solicited_only)
{
    const taken_context* const known = find(queue->context);
    device_process* const process    = device_process::current();
    const std::uint32_t uar          = known != nullptr ? known->uar.load() : 0;
    const std::lock_guard hold(arming);
    const int failed = original.req_notify_cq(queue, solicited_only);
    if (failed != 0 || process == nullptr || process->pages().traps(uar)) {
        return failed;
    }
    if (const std::byte* const page = process->pages().address(uar)) {
        std::uint64_t value = 0;
        std::memcpy(&value, page + arm_offset, sizeof(value));
        process->ring(uar, arm_offset, value);
    }
    return failed;
}

// Reads the device's clock. libmlx5 would read it from a page where nothing counts.
int read_clock(ibv_context*, ibv_values_ex* values)
{
    if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) {
        return EINVAL;
    }
    if (values->comp_mask != 0) {
        values->raw_clock = {.tv_sec = 0, .tv_nsec = static_cast<long>(monotonic_ns())};
    }
    return 0;
}

bool known_operations(const ibv_context_ops& operations)
{
    return original.post_send == nullptr ||
           (operations.post_send == original.post_send && operations.poll_cq == original.poll_cq &&
            operations.req_notify_cq == original.req_notify_cq && operations.bind_mw == original.bind_mw);
}

} // namespace

void take_context(ibv_context* context, std::uint32_t uar)
{
    device_process* const process = device_process::current();
    if (process == nullptr || uar == 0) {
        return;
    }
    const std::lock_guard hold(taking);
    taken_context* const room = find(nullptr);
    if (room == nullptr || !known_operations(context->ops)) {
        process->pages().make_trapping(uar);
        return;
    }
    if (original.post_send == nullptr) { // once, because operations of other contexts read it
        original = context->ops;
    }
    room->uar.store(uar);
    room->context.store(context, std::memory_order_release);
    context->ops.post_send     = post_send;
    context->ops.bind_mw       = bind_window;
    context->ops.poll_cq       = poll;
    context->ops.req_notify_cq = arm;
    if (verbs_context* const whole = verbs_get_ctx(context)) {
        whole->query_rt_values = read_clock;
    }
}

void release_context(const ibv_context* context)
{
    if (taken_context* const known = context != nullptr ? find(context) : nullptr) {
        known->uar.store(0);
        known->context.store(nullptr, std::memory_order_release);
    }
}

void take_queue_pair(ibv_qp_ex* queue_pair)
{
    const taken_context* const known = queue_pair != nullptr ? find(queue_pair->qp_base.context) : nullptr;
    if (known == nullptr || queue_pair->wr_complete == nullptr || queue_pair->wr_complete == complete ||
        queue_pair->qp_base.state != IBV_QPS_RTS) {
        return;
    }
    int (*expected)(ibv_qp_ex*) = nullptr;
    if (original_complete.compare_exchange_strong(expected, queue_pair->wr_complete) ||
        expected == queue_pair->wr_complete) {
        queue_pair->wr_complete = complete;
    } else if (device_process* const process = device_process::current()) {
        process->pages().make_trapping(known->uar.load());
    }
}

void give_page_away(const void* address)
{
    if (device_process* const process = device_process::current()) {
        process->pages().make_trapping_at(address);
    }
}

} // namespace ucxl::softhca
