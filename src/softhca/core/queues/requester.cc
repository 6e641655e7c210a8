// Executes send queues in the order of posting: each WQE until it is completed, refused, or has to wait for the peer.
#include "adversarial_order.h"
#include "dc_stream.h"
#include "queue_work.h"
#include "send_outcome.h"
#include "send_ring.h"
#include "softhca/core/arena/device_failure.h"
#include "wqe_attempt.h"

namespace ucxl::softhca
{

namespace
{

using prm::qp_state;

bool may_execute(const environment& device, const qp_record& qp)
{
    if (is_dead(device.memory, qp.owner)) {
        return false;
    }
    switch (qp.state) {
    case qp_state::rts:
        return true;
    case qp_state::send_drain:
    case qp_state::send_draining:
        return qp.send.progress.waiting != requester_wait::none; // a WQE that was started is finished
    case qp_state::reset:
    case qp_state::init:
    case qp_state::rtr:
    case qp_state::send_error:
    case qp_state::error:
    case qp_state::suspended:
        break;
    }
    return false;
}

// False when nothing can continue: the queue is empty, or the WQE has to wait.
bool step(environment& device, qp_record& qp, std::uint32_t qpn)
{
    send_queue_state& queue = qp.send;
    if (!may_execute(device, qp)) {
        return false;
    }
    if (queue.progress.waiting != requester_wait::none && device.outside.now_ns() < queue.progress.retry_at_ns) {
        // Again: the one call for all queues was perhaps an earlier one.
        device.outside.wake_at(queue.progress.retry_at_ns);
        return false;
    }
    posted_send posted;
    switch (read_send(device, qp, queue.consumed, posted)) {
    case posted::one:
        break;
    case posted::broken:
        lose_send_queue(device, qp, qpn);
        return true;
    case posted::none:
    case posted::gone:
        queue.progress.waiting = requester_wait::none;
        return false;
    }
    send_request request;
    parse_send_wqe(request, posted.wqe(), qp.service);
    request.index = queue.consumed;

    // Counted as done before it is executed: a failure during it flushes the WQEs after it.
    queue.consumed  = static_cast<std::uint16_t>(queue.consumed + posted.blocks);
    const auto sent = as_executed(request);
    if (in_failed_stream(qp, sent.stream)) {
        flush_in_stream(device, qp, qpn, sent);
        return true;
    }
    completion cqe;
    const attempted tried = attempt_wqe(device, qp, qpn, request, nullptr, cqe);
    const bool waits      = queue.progress.waiting != requester_wait::none;
    if (waits) {
        queue.consumed = request.index;
    } else if (tried.result.result == answer::outcome::done) {
        finish_send(device, qp, qpn, sent, cqe);
    } else {
        fail_send(device, qp, qpn, sent, tried.result.syndrome);
    }
    settle_peer(device, tried.peer_qpn, tried.result);
    return !waits;
}

} // namespace

bool run_send_queue(environment& device, std::uint32_t qpn, unsigned budget)
{
    qp_record* const qp = device.memory.qps.find(qpn);
    if (qp == nullptr || qp->owner.client != device.self || !qp->send.present) {
        return false;
    }
    if (device.order != nullptr) {
        device.order->release_some(device, *qp);
    }
    if (qp->state == qp_state::error || qp->state == qp_state::send_error) {
        return flush_queue_pair(device, qpn);
    }
    if (device.order != nullptr) {
        return device.order->run(device, *qp, qpn);
    }
    bool any    = false;
    device.turn = {};
    while (budget != 0 && !device.turn.used_up() && step(device, *qp, qpn)) {
        any = true;
        budget--;
        if (qp->send.consumed == qp->send.rung) {
            break; // what is posted from now on has a doorbell of its own
        }
    }
    return any || device.turn.used_up();
}

} // namespace ucxl::softhca
