#include "wqe_attempt.h"

#include <string>
#include <utility>

#include "async_events.h"
#include "connection.h"
#include "datagram.h"
#include "dc_target.h"
#include "port_traffic.h"
#include "prm/decode.h"
#include "prm/qpc.h"
#include "retry.h"
#include "softhca/core/arena/cost.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/keys/key_work.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe_syndrome;
using prm::qp_service;
using prm::wqe_opcode;
using outcome = answer::outcome;

constexpr std::uint64_t max_message_bytes = std::uint64_t{1} << 31;

class wqe_attempt
{
public:
    wqe_attempt(environment& device, qp_record& qp, std::uint32_t qpn, const send_request& request,
                const piece_order* pieces)
        : _device(device), _qp(qp), _qpn(qpn), _request(request), _pieces(pieces)
    {
    }

    answer run(completion& cqe);
    std::uint32_t peer_qpn() const { return _peer_qpn; }

private:
    answer begin();
    answer try_again();
    answer execute(completion& cqe);
    answer execute_umr();
    answer execute_datagram();
    answer execute_message(completion& cqe);
    qp_record* find_responder();
    answer exchange_with(const responder& peer, completion& cqe);
    std::uint64_t longest_message() const;
    bool gets_lost();
    answer wait_for(const answer& result);
    void wait(requester_wait why, std::uint64_t time_ns);
    void trace();
    exchange self() const { return {_device, _qp, _qpn, _request, _pieces}; }

    environment& _device;
    qp_record& _qp;
    std::uint32_t _qpn;
    std::uint32_t _peer_qpn = 0;
    bool _goes_on           = false; // continues after others had the lock
    const send_request& _request;
    const piece_order* _pieces;
};

answer wqe_attempt::run(completion& cqe)
{
    answer result = _qp.send.progress.waiting == requester_wait::none ? begin() : try_again();
    if (_qp.send.progress.waiting != requester_wait::none) {
        return result;
    }
    if (result.result == outcome::done) {
        result = execute(cqe);
    }
    return wait_for(result);
}

answer wqe_attempt::begin()
{
    const auto opcode = static_cast<std::uint32_t>(_request.opcode);
    _qp.send.progress = {.rnr_left = _qp.rnr_retry, .tries_left = _qp.retry_count};
    if (opcode < wqe_opcodes) {
        _device.memory.counts.wqes[opcode]++;
    }
    if (_device.outside.tracing()) {
        trace();
    }
    _device.owed_ns += wqe_cost_ns(static_cast<card_times>(_device.memory.times), _request.opcode);
    if (suffer_device_fault(_device, _qp.owner, opcode)) {
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
answer wqe_attempt::try_again()
{
    const requester_wait reason = std::exchange(_qp.send.progress.waiting, requester_wait::none);
    _goes_on                    = reason == requester_wait::turn;
    if (reason == requester_wait::transport) {
        counters_of(_device.memory, _qp).local_ack_timeout_err++;
        if (_qp.send.progress.tries_left == 0) {
            return own_fault(cqe_syndrome::transport_retry_exceeded);
        }
        _qp.send.progress.tries_left--;
        _device.memory.counts.transport_retries++;
    }
    if (reason == requester_wait::rnr && _qp.send.progress.rnr_left != endless_rnr_retry) {
        _qp.send.progress.rnr_left--;
    }
    return {};
}

answer wqe_attempt::execute(completion& cqe)
{
    const bool is_too_long = _qp.service == qp_service::dci && _request.wqe.size() > _device.memory.card.dc_wqe;
    if (!_request.understood || is_too_long) {
        return own_fault(cqe_syndrome::local_qp_operation);
    }
    switch (_request.opcode) {
    case wqe_opcode::nop:
        return {};
    case wqe_opcode::umr:
        return execute_umr();
    case wqe_opcode::local_invalidate: {
        const auto syndrome = invalidate_key(_device, _qp, _qpn, _request.imm, false);
        return syndrome == no_syndrome ? answer{} : own_fault(syndrome);
    }
    default:
        return _qp.service == qp_service::ud ? execute_datagram() : execute_message(cqe);
    }
}

// In the adversarial order the new list is there before the new context: a key in use while it is changed is neither
// the old one nor the new one.
answer wqe_attempt::execute_umr()
{
    const bool in_halves = _pieces != nullptr && _pieces->count() > 1 && _qp.send.progress.moved == 0;
    const auto syndrome =
        softhca::execute_umr(_device, _qp, _qpn, _request.wqe, in_halves ? umr_part::entries : umr_part::all);
    if (syndrome != no_syndrome) {
        return own_fault(syndrome);
    }
    _qp.send.progress.moved = 1;
    return in_halves ? next_turn() : answer{};
}

answer wqe_attempt::execute_datagram()
{
    if (gets_lost()) {
        count_datagram(_device.memory, _qp, nullptr, _request);
        return unanswered(self());
    }
    const auto delivered = deliver_datagram(self());
    _peer_qpn            = delivered.receiver;
    count_datagram(_device.memory, _qp, _device.memory.qps.find(_peer_qpn), _request);
    return delivered.result;
}

std::uint64_t wqe_attempt::longest_message() const
{
    const prm::const_view<prm::qpc> context(std::as_bytes(std::span(_qp.context)));
    const std::uint8_t log_bytes = context.get(prm::qpc::log_msg_max);
    return log_bytes == 0 ? max_message_bytes : std::uint64_t{1} << log_bytes;
}

qp_record* wqe_attempt::find_responder()
{
    if (_qp.service == qp_service::dci) {
        _peer_qpn = target_of(_request);
        return find_target(_device, _request);
    }
    _peer_qpn = _qp.path.remote_qpn;
    return find_peer(_device.memory, _qp, _qpn);
}

// Whether the message gets lost on its way: the port is down, or --fault says so.
bool wqe_attempt::gets_lost()
{
    if (!port_is_up(_device.memory, _qp.owner.function)) {
        return true;
    }
    return !_goes_on &&
           strike(_device.memory, fault_kind::drop, static_cast<std::uint32_t>(_request.opcode)) != nullptr;
}

answer wqe_attempt::execute_message(completion& cqe)
{
    const std::uint64_t length = _request.data.length();
    if (length > max_message_bytes || length > longest_message()) {
        return own_fault(cqe_syndrome::local_length);
    }
    const bool reliable   = is_reliable(_qp.service);
    qp_record* const peer = gets_lost() ? nullptr : find_responder();
    const bool expected   = peer != nullptr && in_sequence(_qp, *peer);
    answer result         = nobody_answers();
    if (expected) {
        result = exchange_with({*peer, _peer_qpn}, cqe);
    }
    count_exchange(_device.memory, _qp, peer, expected, _request, result);
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

answer wqe_attempt::exchange_with(const responder& peer, completion& cqe)
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
        if (peer.qp.state == prm::qp_state::rtr && !peer.qp.communication_told) {
            peer.qp.communication_told = true;
            notify_queue_pair(_device, peer.qp, prm::event_type::comm_established);
        }
    }
    return result;
}

answer wqe_attempt::wait_for(const answer& result)
{
    if (result.result != outcome::part_done) {
        _qp.send.progress.moved = 0; // a retry starts from the beginning
    }
    switch (result.result) {
    case outcome::done:
    case outcome::refused:
        break;
    case outcome::part_done:
        wait(requester_wait::turn, never_ns); // no timer: the caller that runs the queue comes again
        _qp.send.progress.retry_at_ns = 0;
        break;
    case outcome::lost:
        wait(requester_wait::transport, ack_timeout_ns(_qp.ack_timeout));
        break;
    case outcome::not_ready:
        if (_qp.send.progress.rnr_left == 0) {
            return {.result     = outcome::refused,
                    .syndrome   = cqe_syndrome::rnr_retry_exceeded,
                    .peer_fails = result.peer_fails,
                    .peer_event = result.peer_event};
        }
        _device.memory.counts.rnr_waits++;
        const qp_record* const peer = _device.memory.qps.find(_peer_qpn);
        wait(requester_wait::rnr, rnr_timer_ns(peer == nullptr ? 0 : peer->min_rnr_timer));
        break;
    }
    return result;
}

void wqe_attempt::wait(requester_wait why, std::uint64_t time_ns)
{
    wqe_progress& progress = _qp.send.progress;
    progress.waiting       = why;
    progress.retry_at_ns   = never_ns;
    if (time_ns != never_ns) {
        progress.retry_at_ns = _device.outside.now_ns() + time_ns;
        _device.outside.wake_at(progress.retry_at_ns);
    }
}

void wqe_attempt::trace()
{
    const std::string text = "qp " + std::to_string(_qpn) + " " + prm::decode_wqe(_request.wqe, _qp.service);
    _device.outside.trace(text);
}

} // namespace

attempted attempt_wqe(environment& device, qp_record& qp, std::uint32_t qpn, const send_request& request,
                      const piece_order* pieces, completion& cqe)
{
    wqe_attempt attempt(device, qp, qpn, request, pieces);
    const answer result = attempt.run(cqe);
    return {result, attempt.peer_qpn()};
}

} // namespace ucxl::softhca
