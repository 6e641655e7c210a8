// Queue pairs in error: all posted WQEs complete as flushed, in the order of posting, sends before receives.
#include "async_events.h"
#include "connection.h"
#include "queue_work.h"
#include "receive_queue.h"
#include "send_ring.h"
#include "work_completion.h"

namespace ucxl::softhca
{

namespace
{

prm::const_view<prm::wqe_control_segment> control_of(posted_send& posted)
{
    return prm::const_view<prm::wqe_control_segment>(
        std::span(posted.bytes).first<prm::wqe_control_segment::size_bytes>());
}

// As many as were posted, and at most as many as the counter can express, whatever the process does to it meanwhile.
constexpr unsigned counter_values = 1U << 16;

// A lost CQ accepts no CQE, but the posted WQEs are consumed all the same.
bool flush_receives(environment& device, qp_record& qp, std::uint32_t qpn)
{
    if (qp.srq != 0 || !qp.receive.present) {
        return false; // the receives of a shared queue belong to the other queue pairs, too
    }
    unsigned flushed = 0;
    for (; flushed < counter_values; flushed++) {
        posted_receive next;
        if (read_next_receive(device, qp, next) != received::one) {
            break;
        }
        device.memory.counts.flushed_wqes++;
        (void)complete_failed_receive(device, qp, qpn, next, prm::cqe_syndrome::flushed);
    }
    return flushed != 0;
}

bool flush_sends(environment& device, qp_record& qp, std::uint32_t qpn)
{
    using control    = prm::wqe_control_segment;
    unsigned flushed = 0;
    posted_send next;
    for (; flushed < counter_values; flushed++) {
        const std::uint16_t index = qp.send.consumed;
        if (read_send_control(device, qp, index, next) != posted::one) {
            break;
        }
        const auto view = control_of(next);
        const queue_step step{queue_step::kind::sends, qpn, static_cast<std::uint16_t>(index + next.blocks), 0};
        device.memory.counts.flushed_wqes++;
        if (view.get(control::completion) == prm::wqe_completion::on_first_error) {
            take_step(device.memory, step);
        } else {
            (void)complete_failed_send(device, qp, qpn, view.get(control::opcode), index, prm::cqe_syndrome::flushed,
                                       step);
        }
    }
    return flushed != 0;
}

} // namespace

void fail_queue_pair(environment& device, std::uint32_t qpn)
{
    qp_record* const qp = device.memory.qps.find(qpn);
    if (qp == nullptr || qp->state == prm::qp_state::reset) {
        return;
    }
    qp->state                 = prm::qp_state::error;
    qp->send.progress.waiting = requester_wait::none;
    qp->send.in_flight        = 0;
    flush_queue_pair(device, qpn);
    if (qp->srq != 0 && !qp->last_receive_told) {
        qp->last_receive_told = true;
        notify_queue_pair(device, *qp, prm::event_type::srq_last_wqe);
    }
}

void fail_send_queue(environment& device, std::uint32_t qpn)
{
    qp_record* const qp = device.memory.qps.find(qpn);
    if (qp != nullptr) {
        qp->state                 = prm::qp_state::send_error;
        qp->send.progress.waiting = requester_wait::none;
        qp->send.in_flight        = 0;
        flush_queue_pair(device, qpn);
    }
}

bool flush_queue_pair(environment& device, std::uint32_t qpn)
{
    qp_record* const qp = device.memory.qps.find(qpn);
    if (qp == nullptr) {
        return false;
    }
    const bool in_error = qp->state == prm::qp_state::error;
    bool any            = false;
    if (qp->send.present && (in_error || qp->state == prm::qp_state::send_error)) {
        any = flush_sends(device, *qp, qpn);
    }
    if (in_error) {
        any |= flush_receives(device, *qp, qpn);
    }
    return any;
}

} // namespace ucxl::softhca
