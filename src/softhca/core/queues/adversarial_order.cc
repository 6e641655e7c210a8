#include "adversarial_order.h"

#include <algorithm>
#include <new>
#include <utility>

#include "connection.h"
#include "dc_stream.h"
#include "piece_order.h"
#include "retry.h"
#include "seeded_choice.h"
#include "softhca/core/arena/device_failure.h"
#include "wqe_attempt.h"

namespace ucxl::softhca
{

namespace
{

using prm::wqe_fence;
using prm::wqe_opcode;

constexpr unsigned actions_at_a_time = 64; // before others may have the lock
constexpr std::uint64_t pause_ns     = 50'000;
constexpr unsigned most_late         = 3;
constexpr unsigned most_reluctance   = 6;
constexpr unsigned refusals_one_in   = 4;
constexpr unsigned held_one_in       = 4;
constexpr unsigned pauses_one_in     = 4;
constexpr unsigned tries_at_once     = 1U << 16; // pieces of the longest message, and more

std::uint64_t mix(std::uint64_t seed, std::uint64_t number)
{
    return seeded_choice(seed ^ (number * 0xd1342543de82ef95)).next();
}

bool waits_for_key_changes(wqe_fence fence)
{
    return fence == wqe_fence::initiator_small || fence == wqe_fence::strong_ordering ||
           fence == wqe_fence::small_and_full;
}

// Whether a key change with that fence waits for the earlier ones, on a card that says it needs `needed`.
bool waits_as_needed(wqe_fence fence, prm::umr_fence_kind needed)
{
    switch (needed) {
    case prm::umr_fence_kind::none:
        return true;
    case prm::umr_fence_kind::small:
        return waits_for_key_changes(fence);
    case prm::umr_fence_kind::strong:
        break;
    }
    return fence == wqe_fence::strong_ordering;
}

bool waits_for_reads(wqe_fence fence)
{
    return fence == wqe_fence::full || fence == wqe_fence::strong_ordering || fence == wqe_fence::small_and_full;
}

// Whether writes to that key are relaxed. A key made of entries is as its first entry.
bool writes_relaxed(arena& memory, std::uint32_t key)
{
    for (unsigned level = 0; level <= max_indirection; level++) {
        const mkey_record* const found = memory.find_key(key);
        if (found == nullptr || found->relaxed_writes) {
            return found != nullptr;
        }
        if ((found->backing != mkey_backing::klm && found->backing != mkey_backing::ksm) || found->entries_used == 0) {
            return false;
        }
        key = prm::const_view<prm::klm>(memory.translations.entries[found->entries_first]).get(prm::klm::mkey);
    }
    return false;
}

bool takes_receive(const send_request& request)
{
    switch (request.opcode) {
    case wqe_opcode::send:
    case wqe_opcode::send_imm:
    case wqe_opcode::send_invalidate:
    case wqe_opcode::rdma_write_imm:
        return true;
    default:
        return false;
    }
}

// Whether there is a WQE, or a ring that cannot be read.
bool is_posted(environment& device, qp_record& qp, std::uint16_t at)
{
    posted_send next;
    const posted found = read_send_control(device, qp, at, next);
    return found == posted::one || found == posted::broken;
}

} // namespace

std::uint64_t adversarial_order::choose(std::uint32_t qpn, std::uint64_t count)
{
    return mix(mix(_seed, qpn), ++_choices[qpn]) % count;
}

std::uint64_t adversarial_order::choose_for_cq(std::uint32_t cqn, std::uint64_t count)
{
    return mix(mix(_seed, ~cqn), ++_cq_choices[cqn]) % count;
}

bool adversarial_order::holds_back(environment& device, std::uint32_t cqn)
{
    if (_num_held == most_held || choose_for_cq(cqn, held_one_in) != 0) {
        return false;
    }
    _held[_num_held++] = cqn;
    device.outside.wake_at(device.outside.now_ns() + pause_ns);
    return true;
}

void adversarial_order::release_some(environment& device, const qp_record& qp)
{
    const auto released = [&](std::uint32_t cqn) {
        const cq_record* const cq = device.memory.cqs.find(cqn);
        if (cq != nullptr && cq->holds && choose_for_cq(cqn, 2) == 0) {
            release_completion(device, cqn);
        }
        return cq == nullptr || !cq->holds;
    };
    released(qp.send_cq);
    released(qp.receive_cq);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < _num_held; i++) {
        if (!released(_held[i])) {
            _held[kept++] = _held[i];
        }
    }
    _num_held = kept;
    if (_num_held != 0) {
        device.outside.wake_at(device.outside.now_ns() + pause_ns);
    }
}

// The WQEs in flight of that queue. What is left of an earlier use of the queue pair is dropped. Null when too many
// queues have WQEs in flight, or there is no memory.
adversarial_order::queue* adversarial_order::open(environment& device, qp_record& qp, std::uint32_t qpn)
{
    std::uint16_t& place = _places[qpn];
    if (place != 0) {
        queue& own = *_queues[place - 1U];
        if (own.qpn == qpn && own.token == qp.send.in_flight) {
            return &own;
        }
        place = 0;
    }
    for (std::size_t i = 0; i < busy; i++) {
        if (_queues[i] == nullptr) {
            _queues[i].reset(new (std::nothrow) queue);
        }
        if (_queues[i] == nullptr) {
            return nullptr;
        }
        queue& free                 = *_queues[i];
        const qp_record* const user = free.qpn == 0 ? nullptr : device.memory.qps.find(free.qpn);
        if (user != nullptr && user->owner.client == device.self && user->send.in_flight == free.token) {
            continue;
        }
        free.qpn          = qpn;
        free.token        = ++_tokens;
        free.late         = static_cast<std::uint8_t>(choose(qpn, most_late + 1));
        free.first        = 0;
        free.count        = 0;
        qp.send.in_flight = free.token;
        place             = static_cast<std::uint16_t>(i + 1);
        return &free;
    }
    return nullptr;
}

bool adversarial_order::run(environment& device, qp_record& qp, std::uint32_t qpn)
{
    const bool runs = qp.state == prm::qp_state::rts || qp.state == prm::qp_state::send_drain ||
                      qp.state == prm::qp_state::send_draining;
    if (!runs || is_dead(device.memory, qp.owner) ||
        (qp.send.in_flight == 0 && !is_posted(device, qp, qp.send.consumed))) {
        return false;
    }
    queue* const own = open(device, qp, qpn);
    if (own == nullptr || own->late != 0) {
        device.outside.wake_at(device.outside.now_ns() + pause_ns);
        if (own != nullptr) {
            own->late--;
        }
        return own != nullptr;
    }
    bool any = false;
    for (unsigned done = 0; done < actions_at_a_time; done++) {
        const choices now = possible_now(device, qp, *own);
        if (now.count == 0) {
            break;
        }
        any = true;
        perform(device, qp, *own, now.list[choose(qpn, now.count)]);
        if (qp.send.in_flight != own->token) {
            return true; // the queue pair has failed
        }
        if (choose(qpn, pauses_one_in) == 0) {
            break;
        }
    }
    if (own->count == 0 && !is_posted(device, qp, qp.send.consumed)) {
        qp.send.in_flight = 0;
        own->qpn          = 0;
        _places[qpn]      = 0;
    } else {
        wake_later(device, *own, any);
    }
    return any;
}

// Each call is for all queues of the process, so it is asked for again by whoever still waits.
void adversarial_order::wake_later(environment& device, queue& own, bool soon)
{
    std::uint64_t time_ns = soon ? device.outside.now_ns() + pause_ns : never_ns;
    for (std::size_t i = 0; i < own.count; i++) {
        const flight& one        = own.at(i);
        const requester_wait why = one.progress.waiting;
        if (one.stage == stage::posted && why != requester_wait::none && why != requester_wait::turn) {
            time_ns = std::min(time_ns, one.progress.retry_at_ns);
        }
    }
    if (time_ns != never_ns) {
        device.outside.wake_at(time_ns);
    }
}

adversarial_order::choices adversarial_order::possible_now(environment& device, qp_record& qp, queue& own)
{
    choices now;
    const std::uint64_t now_ns = device.outside.now_ns();
    bool failed                = false;
    for (std::size_t i = 0; i < own.count; i++) {
        failed = failed || own.at(i).stage == stage::failed;
        if (may_attempt(device, own, i, now_ns)) {
            now.add(action::attempt, i);
        }
    }
    if (own.count != 0 && own.at(0).stage != stage::posted) {
        now.add(action::retire);
    }
    if (!failed && own.count < capacity && qp.state == prm::qp_state::rts && is_posted(device, qp, end_of(qp, own))) {
        now.add(action::admit);
    }
    return now;
}

// The block after the WQEs in flight.
std::uint16_t adversarial_order::end_of(const qp_record& qp, queue& own)
{
    std::uint16_t end = qp.send.consumed;
    for (std::size_t i = 0; i < own.count; i++) {
        end = static_cast<std::uint16_t>(end + own.at(i).wqe.blocks);
    }
    return end;
}

// Whether a WQE may be executed although an earlier one was not.
bool adversarial_order::may_pass(const flight& earlier, const flight& later, const card& card)
{
    if (later.fence == wqe_fence::strong_ordering && !card.ignores_fences) {
        return false;
    }
    if (earlier.channel != later.channel) {
        return true;
    }
    const bool waits_for_reads = !card.ignores_fences && softhca::waits_for_reads(later.fence);
    switch (earlier.kind) {
    case kind::message:
        return later.kind == kind::relaxed_write && earlier.sent.opcode == wqe_opcode::rdma_write;
    case kind::relaxed_write:
        return later.kind == kind::relaxed_write;
    case kind::read:
        return later.kind != kind::read && !waits_for_reads;
    case kind::atomic:
        return (later.kind == kind::message || later.kind == kind::key_change) && !waits_for_reads;
    case kind::key_change:
        return later.kind == kind::key_change ? !waits_as_needed(later.fence, card.umr_fence)
                                              : !waits_for_key_changes(later.fence);
    }
    return false;
}

bool adversarial_order::may_attempt(environment& device, queue& own, std::size_t number, std::uint64_t now_ns)
{
    const flight& wanted         = own.at(number);
    const wqe_progress& progress = wanted.progress;
    if (wanted.stage != stage::posted || (progress.waiting != requester_wait::none && now_ns < progress.retry_at_ns)) {
        return false;
    }
    for (std::size_t i = 0; i < number; i++) {
        const flight& earlier = own.at(i);
        if (earlier.stage == stage::failed ||
            (earlier.stage == stage::posted && !may_pass(earlier, wanted, device.memory.card))) {
            return false;
        }
    }
    return true;
}

void adversarial_order::perform(environment& device, qp_record& qp, queue& own, const possible& chosen)
{
    switch (chosen.what) {
    case action::admit:
        return admit(device, qp, own);
    case action::attempt:
        return hesitate(device, qp, own, own.at(chosen.number)) ? void() : attempt(device, qp, own, chosen.number);
    case action::retire:
        return retire(device, qp, own);
    }
}

void adversarial_order::admit(environment& device, qp_record& qp, queue& own)
{
    const std::uint16_t begin = end_of(qp, own);
    flight& made              = own.at(own.count);
    switch (read_send(device, qp, begin, made.wqe)) {
    case posted::one:
        break;
    case posted::broken:
        return lose_send_queue(device, qp, own.qpn);
    case posted::none:
    case posted::gone:
        return;
    }
    send_request request;
    parse_send_wqe(request, made.wqe.wqe(), qp.service);
    request.index       = begin;
    made.stage          = stage::posted;
    made.kind           = kind_of(device, request);
    made.fence          = request.fence;
    made.reluctance     = static_cast<std::uint8_t>(choose(own.qpn, most_reluctance + 1));
    made.may_be_refused = is_reliable(qp.service) && qp.rnr_retry == endless_rnr_retry && takes_receive(request);
    made.progress       = {};
    made.seed           = mix(_seed, choose(own.qpn, ~std::uint64_t{0}));
    made.length         = made.kind == kind::key_change ? 2 : request.data.length(); // its two halves
    made.sent           = as_executed(request);
    made.channel        = stream_bit(qp, request.stream);
    own.count++;
}

adversarial_order::kind adversarial_order::kind_of(environment& device, const send_request& request)
{
    if (is_atomic(request.opcode)) {
        return kind::atomic;
    }
    switch (request.opcode) {
    case wqe_opcode::rdma_read:
        return kind::read;
    case wqe_opcode::umr:
    case wqe_opcode::local_invalidate:
        return kind::key_change;
    case wqe_opcode::rdma_write:
        return writes_relaxed(device.memory, request.remote_key) ? kind::relaxed_write : kind::message;
    default:
        return kind::message;
    }
}

// Whether the WQE is left alone for now: for no reason, or because the responder is not ready.
bool adversarial_order::hesitate(environment& device, const qp_record& qp, queue& own, flight& chosen)
{
    if (chosen.reluctance != 0) {
        chosen.reluctance--;
        return true;
    }
    if (!chosen.may_be_refused) {
        return false;
    }
    chosen.may_be_refused = false;
    if (chosen.progress.waiting != requester_wait::none || choose(own.qpn, refusals_one_in) != 0) {
        return false;
    }
    device.memory.counts.rnr_waits++;
    chosen.progress = {.waiting     = requester_wait::rnr,
                       .rnr_left    = qp.rnr_retry,
                       .tries_left  = qp.retry_count,
                       .retry_at_ns = device.outside.now_ns() + pause_ns};
    device.outside.wake_at(chosen.progress.retry_at_ns);
    return true;
}

void adversarial_order::attempt(environment& device, qp_record& qp, queue& own, std::size_t number)
{
    flight& chosen = own.at(number);
    if (in_failed_stream(qp, chosen.sent.stream)) {
        chosen.stage = stage::failed; // and flushed when it is completed
        return;
    }
    qp.send.progress = chosen.progress;
    const piece_order pieces(chosen.seed, chosen.length, chosen.kind == kind::read);
    send_request request;
    parse_send_wqe(request, chosen.wqe.wqe(), qp.service);
    request.index                 = chosen.sent.index;
    chosen.cqe                    = {};
    const auto [result, peer_qpn] = attempt_wqe(device, qp, own.qpn, request, &pieces, chosen.cqe);
    chosen.progress               = std::exchange(qp.send.progress, {});
    if (chosen.progress.waiting != requester_wait::none) {
        return;
    }
    chosen.stage    = result.result == answer::outcome::done ? stage::executed : stage::failed;
    chosen.syndrome = result.syndrome;
    if (!result.peer_fails) {
        return;
    }
    finish_earlier(device, qp, own, number);
    if (peer_qpn == own.qpn) { // its own peer
        while (qp.send.in_flight == own.token && own.count != 0 && own.at(0).stage != stage::posted) {
            retire(device, qp, own);
        }
    }
    settle_peer(device, peer_qpn, result);
}

// The responder executes requests in the order of posting. Before it fails at one of them, it has executed the earlier
// ones.
void adversarial_order::finish_earlier(environment& device, qp_record& qp, queue& own, std::size_t number)
{
    for (std::size_t i = 0; i < number; i++) {
        flight& earlier = own.at(i);
        for (unsigned tries = 0; tries < tries_at_once && earlier.stage == stage::posted; tries++) {
            attempt(device, qp, own, i);
            const requester_wait why = earlier.progress.waiting;
            if (why != requester_wait::none && why != requester_wait::turn) {
                break;
            }
        }
    }
}

void adversarial_order::retire(environment& device, qp_record& qp, queue& own)
{
    flight& oldest   = own.at(0);
    qp.send.consumed = static_cast<std::uint16_t>(qp.send.consumed + oldest.wqe.blocks);
    own.first        = (own.first + 1) % capacity;
    own.count--;
    if (oldest.stage == stage::executed) {
        finish_send(device, qp, own.qpn, oldest.sent, oldest.cqe);
    } else {
        fail_send(device, qp, own.qpn, oldest.sent, oldest.syndrome);
    }
}

} // namespace ucxl::softhca
