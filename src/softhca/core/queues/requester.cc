// Executes send queues: each WQE until it is completed, refused, or has to wait for the peer.
#include <string>

#include "async_events.h"
#include "connection.h"
#include "datagram.h"
#include "prm/decode.h"
#include "prm/qpc.h"
#include "queue_work.h"
#include "responder.h"
#include "retry.h"
#include "send_ring.h"
#include "softhca/core/arena/cost.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/keys/key_work.h"
#include "work_completion.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe_syndrome;
using prm::qp_service;
using prm::qp_state;
using prm::wqe_opcode;
using outcome = answer::outcome;

constexpr std::uint64_t max_message_bytes = std::uint64_t{1} << 31;

// The execution of one WQE of a send queue.
class requester
{
public:
    requester(environment& device, qp_record& qp, std::uint32_t qpn) : _device(device), _qp(qp), _qpn(qpn) {}

    // False when nothing can continue: the queue is empty, or the WQE has to wait.
    bool step();

private:
    bool may_begin() const;
    answer begin();
    answer try_again();
    answer execute(completion& cqe);
    answer execute_datagram();
    answer execute_message(completion& cqe);
    answer exchange_with(const responder& peer, completion& cqe);
    std::uint64_t longest_message() const;
    void settle(const answer& result, completion& cqe);
    void settle_peer(const answer& result);
    void wait(requester_wait why, std::uint64_t time_ns);
    void finish(completion& cqe);
    void fail(cqe_syndrome syndrome);
    void lose_queue();
    void trace();
    exchange self() const { return {_device, _qp, _qpn, _request}; }

    environment& _device;
    qp_record& _qp;
    std::uint32_t _qpn;
    std::uint32_t _peer_qpn = 0;
    bool _understood        = false;
    bool _goes_on           = false; // continues after others had the lock
    unsigned _blocks        = 0;
    send_request _request;
};

bool requester::may_begin() const
{
    if (has_failed(_device.memory, _qp.owner.function)) {
        return false;
    }
    switch (_qp.state) {
    case qp_state::rts:
        return true;
    case qp_state::send_drain:
    case qp_state::send_draining:
        return _qp.send.waiting != requester_wait::none; // a WQE that was started is finished
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

bool requester::step()
{
    send_queue_state& queue = _qp.send;
    if (!may_begin() || (queue.waiting != requester_wait::none && _device.outside.now_ns() < queue.retry_at_ns)) {
        return false;
    }
    posted_send posted;
    switch (read_next_send(_device, _qp, posted)) {
    case posted::one:
        break;
    case posted::broken:
        lose_queue();
        return true;
    case posted::none:
    case posted::gone:
        queue.waiting = requester_wait::none;
        return false;
    }
    _understood    = posted.length != 0 && parse_send_wqe(_request, posted.wqe(), _qp.service);
    _request.index = queue.consumed;
    _blocks        = posted.blocks;

    // Counted as done before it is executed: a failure during it flushes the WQEs after it.
    queue.busy     = true;
    queue.consumed = static_cast<std::uint16_t>(queue.consumed + _blocks);
    completion cqe;
    answer result = queue.waiting == requester_wait::none ? begin() : try_again();
    if (result.result == outcome::done && queue.waiting == requester_wait::none) {
        result = execute(cqe);
    }
    if (queue.waiting == requester_wait::none) {
        settle(result, cqe);
    }
    queue.busy = false;
    return queue.waiting == requester_wait::none;
}

answer requester::begin()
{
    const auto opcode   = static_cast<std::uint32_t>(_request.opcode);
    _qp.send.rnr_left   = _qp.rnr_retry;
    _qp.send.tries_left = _qp.retry_count;
    _qp.send.moved      = 0;
    if (opcode < wqe_opcodes) {
        _device.memory.counts.wqes[opcode]++;
    }
    if (_device.outside.tracing()) {
        trace();
    }
    _device.owed_ns += wqe_cost_ns(static_cast<profile>(_device.memory.profile), _request.opcode);
    if (strike(_device.memory, fault_kind::fatal, opcode) != nullptr) {
        fail_device(_device, _qp.owner.function);
        wait(requester_wait::transport, never_ns);
        return {};
    }
    if (const fault_rule* const rule = strike(_device.memory, fault_kind::wqe, opcode)) {
        return own_fault(static_cast<cqe_syndrome>(rule->status));
    }
    if (const fault_rule* const rule = strike(_device.memory, fault_kind::delay, opcode)) {
        wait(requester_wait::delay, rule->amount);
    }
    return {};
}

// The time of a wait is over.
answer requester::try_again()
{
    const requester_wait reason = std::exchange(_qp.send.waiting, requester_wait::none);
    _goes_on                    = reason == requester_wait::turn;
    if (reason == requester_wait::transport) {
        if (_qp.send.tries_left == 0) {
            return own_fault(cqe_syndrome::transport_retry_exceeded);
        }
        _qp.send.tries_left--;
        _device.memory.counts.transport_retries++;
    }
    if (reason == requester_wait::rnr && _qp.send.rnr_left != endless_rnr_retry) {
        _qp.send.rnr_left--;
    }
    return {};
}

answer requester::execute(completion& cqe)
{
    if (!_understood) {
        return own_fault(cqe_syndrome::local_qp_operation);
    }
    switch (_request.opcode) {
    case wqe_opcode::nop:
        return {};
    case wqe_opcode::umr: {
        const auto syndrome = execute_umr(_device, _qp, _qpn, _request.wqe);
        return syndrome == no_syndrome ? answer{} : own_fault(syndrome);
    }
    case wqe_opcode::local_invalidate: {
        const auto syndrome = invalidate_key(_device, _qp, _qpn, _request.imm, false);
        return syndrome == no_syndrome ? answer{} : own_fault(syndrome);
    }
    default:
        return _qp.service == qp_service::ud ? execute_datagram() : execute_message(cqe);
    }
}

answer requester::execute_datagram()
{
    if (strike(_device.memory, fault_kind::drop, static_cast<std::uint32_t>(_request.opcode)) != nullptr) {
        return unanswered(self());
    }
    const auto delivered = deliver_datagram(self());
    _peer_qpn            = delivered.receiver;
    return delivered.result;
}

std::uint64_t requester::longest_message() const
{
    const prm::const_view<prm::qpc> context(std::as_bytes(std::span(_qp.context)));
    const std::uint8_t log_bytes = context.get(prm::qpc::log_msg_max);
    return log_bytes == 0 ? max_message_bytes : std::uint64_t{1} << log_bytes;
}

answer requester::execute_message(completion& cqe)
{
    const std::uint64_t length = _request.data.length();
    if (length > max_message_bytes || length > longest_message()) {
        return own_fault(cqe_syndrome::local_length);
    }
    const bool reliable = _qp.service == qp_service::rc;
    const bool lost =
        !_goes_on && strike(_device.memory, fault_kind::drop, static_cast<std::uint32_t>(_request.opcode)) != nullptr;
    qp_record* const peer = lost ? nullptr : find_peer(_device.memory, _qp, _qpn);
    answer result         = nobody_answers();
    if (peer != nullptr && in_sequence(_qp, *peer)) {
        _peer_qpn = _qp.path.remote_qpn;
        result    = exchange_with({*peer, _peer_qpn}, cqe);
    }
    if (result.result == outcome::lost || (result.result == outcome::not_ready && !reliable)) {
        if (const answer own = unanswered(self()); own.result != outcome::done) {
            return own;
        }
    }
    if (reliable || result.own_fault || result.result == outcome::done || result.result == outcome::part_done) {
        return result;
    }
    // The sender is not told. The receiver fails only by errors of its own memory.
    return {.peer_fails = result.syndrome == cqe_syndrome::remote_operation && result.peer_fails,
            .peer_event = result.peer_event};
}

answer requester::exchange_with(const responder& peer, completion& cqe)
{
    answer result;
    std::uint64_t length = _request.data.length();
    switch (_request.opcode) {
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_imm:
        result = deliver_write(self(), peer);
        break;
    case wqe_opcode::rdma_read:
        result = serve_read(self(), peer, cqe);
        break;
    case wqe_opcode::atomic_cs:
    case wqe_opcode::atomic_fa:
    case wqe_opcode::atomic_masked_cs:
    case wqe_opcode::atomic_masked_fa:
        result = serve_atomic(self(), peer, cqe);
        length = 0;
        break;
    default:
        result = deliver_send(self(), peer);
        break;
    }
    if (result.result == outcome::done) {
        advance_sequence(_qp, peer.qp, packets_of(_qp, length));
        if (peer.qp.state == qp_state::rtr && !peer.qp.communication_told) {
            peer.qp.communication_told = true;
            notify_queue_pair(_device, peer.qp, prm::event_type::comm_established);
        }
    }
    return result;
}

void requester::settle(const answer& result, completion& cqe)
{
    if (result.result != outcome::part_done) {
        _qp.send.moved = 0; // a retry starts from the beginning
    }
    switch (result.result) {
    case outcome::done:
        finish(cqe);
        break;
    case outcome::part_done:
        wait(requester_wait::turn, never_ns); // no timer: the caller that runs the queue comes again
        _qp.send.retry_at_ns = 0;
        break;
    case outcome::lost:
        wait(requester_wait::transport, ack_timeout_ns(_qp.ack_timeout));
        break;
    case outcome::not_ready:
        if (_qp.send.rnr_left == 0) {
            fail(cqe_syndrome::rnr_retry_exceeded);
        } else {
            _device.memory.counts.rnr_waits++;
            const qp_record* const peer = _device.memory.qps.find(_peer_qpn);
            wait(requester_wait::rnr, rnr_timer_ns(peer == nullptr ? 0 : peer->min_rnr_timer));
        }
        break;
    case outcome::refused:
        fail(result.syndrome);
        break;
    }
    if (result.peer_fails) {
        settle_peer(result);
    }
}

// After the requester: a queue pair that is its own peer completes the refused WQE before it flushes the others.
void requester::settle_peer(const answer& result)
{
    qp_record* const peer = _device.memory.qps.find(_peer_qpn);
    if (peer == nullptr) {
        return;
    }
    fail_queue_pair(_device, _peer_qpn);
    if (result.peer_event != prm::event_type::completion) {
        notify_queue_pair(_device, *peer, result.peer_event);
    }
}

void requester::wait(requester_wait why, std::uint64_t time_ns)
{
    send_queue_state& queue = _qp.send;
    queue.waiting           = why;
    queue.consumed          = _request.index;
    queue.retry_at_ns       = never_ns;
    if (time_ns != never_ns) {
        queue.retry_at_ns = _device.outside.now_ns() + time_ns;
        _device.outside.wake_at(queue.retry_at_ns);
    }
}

void requester::finish(completion& cqe)
{
    if (!_request.signaled()) {
        return;
    }
    describe_send(cqe, _qp, _qpn, _request.opcode, _request.index);
    (*cqe.entry).put(prm::cqe64::solicited, _request.completion == prm::wqe_completion::always_event);
    if (!complete(_device, _qp.send_cq, cqe)) {
        lose_queue();
    }
}

// A reliable connection fails at the first error; unreliable services only stop sending.
void requester::fail(cqe_syndrome syndrome)
{
    const auto opcode = static_cast<std::uint32_t>(_request.opcode);
    if (opcode < wqe_opcodes) {
        _device.memory.counts.failed_wqes[opcode]++;
    }
    const bool told = complete_failed_send(_device, _qp, _qpn, _request.opcode, _request.index, syndrome);
    if (!told) {
        lose_queue();
    } else if (_qp.service == qp_service::rc) {
        fail_queue_pair(_device, _qpn);
    } else {
        fail_send_queue(_device, _qpn);
    }
}

// The CQ is lost: the queue pair cannot report what became of its WQEs.
void requester::lose_queue()
{
    fail_queue_pair(_device, _qpn);
    notify_queue_pair(_device, _qp, prm::event_type::wq_catastrophic_error);
}

void requester::trace()
{
    const std::string text = "qp " + std::to_string(_qpn) + " " + prm::decode_wqe(_request.wqe, _qp.service);
    _device.outside.trace(text);
}

} // namespace

bool run_send_queue(environment& device, std::uint32_t qpn, unsigned budget)
{
    qp_record* const qp = device.memory.qps.find(qpn);
    if (qp == nullptr || qp->owner.client != device.self || !qp->send.present) {
        return false;
    }
    if (qp->state == qp_state::error || qp->state == qp_state::send_error) {
        return flush_queue_pair(device, qpn);
    }
    bool any    = false;
    device.turn = {};
    while (budget != 0 && !device.turn.used_up() && requester(device, *qp, qpn).step()) {
        any = true;
        budget--;
    }
    return any || device.turn.used_up();
}

} // namespace ucxl::softhca
