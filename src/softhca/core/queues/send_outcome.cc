#include "send_outcome.h"

#include "async_events.h"
#include "connection.h"
#include "dc_stream.h"
#include "queue_work.h"
#include "work_completion.h"

namespace ucxl::softhca
{

void finish_send(environment& device, qp_record& qp, std::uint32_t qpn, const executed_send& sent, completion& cqe)
{
    if (in_failed_stream(qp, sent.stream)) {
        return flush_in_stream(device, qp, qpn, sent);
    }
    if (!sent.signaled) {
        return;
    }
    describe_send(cqe, qp, qpn, sent.opcode, sent.index);
    (*cqe.entry).put(prm::cqe64::solicited, sent.wakes);
    if (!complete(device, qp.send_cq, cqe)) {
        lose_send_queue(device, qp, qpn);
    }
}

void fail_send(environment& device, qp_record& qp, std::uint32_t qpn, const executed_send& sent,
               prm::cqe_syndrome syndrome)
{
    if (in_failed_stream(qp, sent.stream)) {
        return flush_in_stream(device, qp, qpn, sent);
    }
    const auto opcode = static_cast<std::uint32_t>(sent.opcode);
    if (opcode < wqe_opcodes) {
        device.memory.counts.failed_wqes[opcode]++;
    }
    const bool told = complete_failed_send(device, qp, qpn, sent.opcode, sent.index, syndrome);
    if (!told) {
        lose_send_queue(device, qp, qpn);
    } else if (!is_reliable(qp.service)) {
        fail_send_queue(device, qpn);
    } else if (!fail_stream(qp, sent.stream)) {
        fail_queue_pair(device, qpn);
    }
}

void lose_send_queue(environment& device, qp_record& qp, std::uint32_t qpn)
{
    fail_queue_pair(device, qpn);
    notify_queue_pair(device, qp, prm::event_type::wq_catastrophic_error);
}

void settle_peer(environment& device, std::uint32_t peer_qpn, const answer& result)
{
    qp_record* const peer = result.peer_fails ? device.memory.qps.find(peer_qpn) : nullptr;
    if (peer == nullptr) {
        return;
    }
    if (!peer->dc.target) { // a target stays, and only this connection to it ends
        fail_queue_pair(device, peer_qpn);
    }
    if (result.peer_event != prm::event_type::completion) {
        notify_queue_pair(device, *peer, result.peer_event);
    }
}

} // namespace ucxl::softhca
