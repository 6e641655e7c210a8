#include "completion.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "adversarial_order.h"
#include "completion_event.h"
#include "prm/decode.h"
#include "prm/doorbell.h"
#include "queue_memory.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe64;

constexpr std::uint32_t counter_mask = 0xffffff; // consumer counters have 24 bits
constexpr std::size_t body_bytes     = cqe64::size_bytes - 1;

std::optional<std::uint32_t> read_consumer(environment& device, const cq_record& cq)
{
    prm::storage<prm::cq_doorbell_record> record;
    const auto from = part_of(cq.doorbell, 0, record.bytes.size());
    if (!from || read_queue(device, {&*from, 1}, record.bytes.data(), record.bytes.size()) != queue_access::ok) {
        return std::nullopt;
    }
    return (*record).get(prm::cq_doorbell_record::consumer_counter);
}

// The consumer counter is read only when its last value leaves no room: usually once per turn of the queue.
bool full(environment& device, cq_record& cq)
{
    const std::uint32_t entries = 1U << cq.log_size;
    if (cq.producer - cq.consumer_seen < entries) {
        return false;
    }
    const auto consumer = read_consumer(device, cq);
    if (!consumer) {
        return true;
    }
    cq.consumer_seen = cq.producer - ((cq.producer - *consumer) & counter_mask);
    return cq.producer - cq.consumer_seen >= entries;
}

// The whole place of the next CQE.
std::optional<piece> next_place(const cq_record& cq)
{
    const std::uint32_t index = cq.collapsed ? 0 : cq.producer & ((1U << cq.log_size) - 1);
    return part_of(cq.buffer, std::uint64_t{index} * cq.entry_size, cq.entry_size);
}

bool next_owner(const cq_record& cq)
{
    return ((cq.producer >> cq.log_size) & 1) != 0;
}

bool is_error(prm::const_view<cqe64> entry)
{
    const auto opcode = entry.get(cqe64::opcode);
    return opcode == prm::cqe_opcode::requester_error || opcode == prm::cqe_opcode::responder_error;
}

bool wakes_solicited(prm::const_view<cqe64> entry)
{
    return is_error(entry) || entry.get(cqe64::solicited);
}

// The journal is valid from the last store of opening it to the first store of closing it.
void set_journal(completion_journal& journal, std::uint32_t cqn)
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref(journal.cqn).store(cqn, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Every part of it may be repeated.
void commit(environment& device, cq_record& cq)
{
    completion_journal& journal = device.memory.journal;
    cq.producer                 = journal.producer + 1;
    take_step(device.memory, journal.step);
    set_journal(journal, 0);
}

void trace(environment& device, std::uint32_t cqn, const completion& cqe)
{
    const std::string text = "cq " + std::to_string(cqn) + " " + prm::decode_cqe(cqe.entry.bytes);
    device.outside.trace(text);
}

} // namespace

void take_step(arena& memory, const queue_step& step)
{
    switch (step.queue) {
    case queue_step::kind::none:
        return;
    case queue_step::kind::sends:
        if (qp_record* const qp = memory.qps.find(step.number)) {
            qp->send.consumed = step.consumed;
        }
        return;
    case queue_step::kind::receives:
        if (qp_record* const qp = memory.qps.find(step.number)) {
            qp->receive.consumed = step.consumed;
        }
        return;
    case queue_step::kind::shared_receives:
        if (srq_record* const srq = memory.srqs.find(step.number)) {
            srq->consumed = step.consumed;
            srq->next     = step.next;
        }
        return;
    }
}

bool completion_write::begin(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step)
{
    cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || cq->overflowed) {
        return false;
    }
    const bool data_in_front = (*cqe.entry).get(cqe64::format) == prm::cqe_format::inline_64;
    const auto place         = next_place(*cq);
    if (!place || cq->entry_size < (data_in_front ? 128 : 64)) {
        lose_completion_queue(device, *cq, prm::cq_error_reason::access_violation);
        return false;
    }
    if (!cq->overrun_ignore && full(device, *cq)) {
        lose_completion_queue(device, *cq, prm::cq_error_reason::overrun);
        return false;
    }
    (*cqe.entry).put(cqe64::owner, next_owner(*cq));
    if (!is_error(*cqe.entry)) { // an error CQE has the vendor's syndrome in its place
        (*cqe.entry).put(cqe64::timestamp, device.outside.now_ns());
    }
    const auto add = [&](std::uint64_t to, const std::byte* from, std::uint64_t length) {
        _to[_count]     = {space::process, place->client, to, length};
        _from[_count++] = own_piece(device, from, length);
    };
    const std::uint64_t entry = place->address + cq->entry_size - cqe64::size_bytes;
    _count                    = 0;
    if (data_in_front) {
        add(place->address, cqe.data.data(), cqe.data.size());
    }
    add(entry, cqe.entry.bytes.data(), body_bytes);
    add(entry + body_bytes, cqe.entry.bytes.data() + body_bytes, 1);

    completion_journal& journal = device.memory.journal;
    journal.producer            = cq->producer;
    journal.step                = step;
    set_journal(journal, cqn);
    return true;
}

void completion_write::end(environment& device, const completion& cqe)
{
    const std::uint32_t cqn = device.memory.journal.cqn;
    cq_record& cq           = device.memory.cqs.records[cqn];
    commit(device, cq);
    const prm::const_view<cqe64> entry(cqe.entry.bytes);
    device.memory.counts.completions++;
    device.memory.counts.error_completions += is_error(entry);
    if (device.outside.tracing()) {
        trace(device, cqn, cqe);
    }
    announce_completion(device, cq, wakes_solicited(entry));
}

void completion_write::abandon(environment& device)
{
    set_journal(device.memory.journal, 0);
}

namespace
{

bool write_completion(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step)
{
    completion_write writing;
    if (!writing.begin(device, cqn, cqe, step)) {
        return false;
    }
    const move_status written = device.outside.move(writing.to(), writing.from());
    if (written == move_status::ok) {
        writing.end(device, cqe);
        return true;
    }
    writing.abandon(device);
    if (written == move_status::fault_to) {
        lose_completion_queue(device, device.memory.cqs.records[cqn], prm::cq_error_reason::access_violation);
    }
    return false;
}

// The CQE is in shared memory, so that it is written even if this process ends. Nothing that can fail is held back, nor
// what someone waits for who does not poll, nor the marker of a resize, which belongs into the old buffer.
bool hold_back(environment& device, std::uint32_t cqn, const completion& cqe, const queue_step& step)
{
    cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || cq->overflowed || cq->armed != cq_arm::none || full(device, *cq) || !next_place(*cq) ||
        is_error(*cqe.entry) || (*cqe.entry).get(cqe64::opcode) == prm::cqe_opcode::resize_cq ||
        !device.order->holds_back(device, cqn)) {
        return false;
    }
    std::ranges::copy(cqe.data, cq->held.begin());
    std::ranges::copy(cqe.entry.bytes, cq->held.begin() + static_cast<std::ptrdiff_t>(cqe.data.size()));
    cq->holds = true;
    take_step(device.memory, step);
    return true;
}

} // namespace

bool complete(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step)
{
    if (device.order != nullptr) {
        release_completion(device, cqn);
        if (hold_back(device, cqn, cqe, step)) {
            return true;
        }
    }
    return write_completion(device, cqn, cqe, step);
}

void release_completion(environment& device, std::uint32_t cqn)
{
    cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || !cq->holds) {
        return;
    }
    completion cqe;
    std::ranges::copy_n(cq->held.begin(), static_cast<std::ptrdiff_t>(cqe.data.size()), cqe.data.begin());
    std::ranges::copy_n(cq->held.begin() + static_cast<std::ptrdiff_t>(cqe.data.size()),
                        static_cast<std::ptrdiff_t>(cqe.entry.bytes.size()), cqe.entry.bytes.begin());
    cq->holds = false;
    (void)write_completion(device, cqn, cqe, {});
}

void release_completions(environment& device, const qp_record& qp)
{
    release_completion(device, qp.send_cq);
    release_completion(device, qp.receive_cq);
}

void repair_completion(environment& device)
{
    completion_journal& journal = device.memory.journal;
    cq_record* const cq         = device.memory.cqs.find(journal.cqn);
    if (cq == nullptr) {
        return set_journal(journal, 0);
    }
    // Until the CQE is counted, its place is still the next one.
    const bool counted = cq->producer != journal.producer;
    cq->producer       = journal.producer;
    prm::storage<cqe64> entry;
    const auto place = next_place(*cq);
    const auto last  = place ? part_of(cq->buffer, place->address + place->length - 1 - cq->buffer.address, 1) : place;
    const bool read  = last && read_queue(device, {&*last, 1}, &entry.bytes.back(), 1) == queue_access::ok;
    const bool mine  = read && !cq->collapsed && (*entry).get(cqe64::owner) == next_owner(*cq) &&
                      (*entry).get(cqe64::opcode) != prm::cqe_opcode::invalid;
    if (!counted && !mine) {
        return set_journal(journal, 0);
    }
    commit(device, *cq);
    announce_completion(device, *cq, read && wakes_solicited(*entry));
}

std::optional<std::uint32_t> entries_waiting(environment& device, const cq_record& cq)
{
    const auto consumer = read_consumer(device, cq);
    return consumer ? std::optional((cq.producer - *consumer) & counter_mask) : std::nullopt;
}

} // namespace ucxl::softhca
