#include "completion.h"

#include <string>

#include "prm/decode.h"
#include "prm/doorbell.h"
#include "prm/eq.h"
#include "queue_memory.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe64;

constexpr std::uint32_t counter_mask = 0xffffff; // consumer counters have 24 bits

// How far `ahead` is in front of a consumer counter; 0 where it is not.
std::uint32_t entries_behind(std::uint32_t consumer, std::uint32_t ahead)
{
    const std::uint32_t distance = (ahead - consumer) & counter_mask;
    return distance <= counter_mask / 2 ? distance : 0;
}

std::optional<std::uint32_t> read_consumer(environment& device, const cq_record& cq)
{
    prm::storage<prm::cq_doorbell_record> record;
    const auto from = part_of(cq.doorbell, 0, record.bytes.size());
    if (!from || read_queue(device, {&*from, 1}, record.bytes.data(), record.bytes.size()) != queue_access::ok) {
        return std::nullopt;
    }
    return (*record).get(prm::cq_doorbell_record::consumer_counter);
}

// The consumer counter is read only when the one read before leaves no room: usually once in a turn of the queue.
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

void lose(environment& device, cq_record& cq)
{
    cq.overflowed = true;
    device.memory.counts.async_events++;
    device.outside.notify(cq.owner.client, cq.error_events, static_cast<std::uint32_t>(prm::event_type::cq_error));
}

void fire(environment& device, cq_record& cq, std::uint8_t sequence)
{
    cq.armed        = cq_arm::none;
    cq.arm_sequence = sequence;
    // Without a channel nobody learns of the event, so nobody would change the sequence number either.
    cq.event_fired = cq.completion_events.channel >= 0;
    device.memory.counts.completion_events++;
    device.outside.notify(cq.owner.client, cq.completion_events,
                          static_cast<std::uint32_t>(prm::event_type::completion));
}

bool is_error(prm::cqe_opcode opcode)
{
    return opcode == prm::cqe_opcode::requester_error || opcode == prm::cqe_opcode::responder_error;
}

// The last byte makes the entry the owner's, so it is a piece of its own behind the others.
move_status write(environment& device, const cq_record& cq, const completion& what)
{
    const bool data_in_front  = (*what.entry).get(cqe64::format) == prm::cqe_format::inline_64;
    const std::uint32_t index = cq.collapsed ? 0 : cq.producer & ((1U << cq.log_size) - 1);
    const auto place          = part_of(cq.buffer, std::uint64_t{index} * cq.entry_size, cq.entry_size);
    if (!place || cq.entry_size < (data_in_front ? 128 : 64)) {
        return move_status::fault_to;
    }
    const std::uint64_t entry  = place->address + cq.entry_size - cqe64::size_bytes;
    constexpr std::size_t body = cqe64::size_bytes - 1;

    const piece to[]{{space::process, place->client, place->address, what.data.size()},
                     {space::process, place->client, entry, body},
                     {space::process, place->client, entry + body, 1}};
    const piece from[]{own_piece(device, what.data.data(), what.data.size()),
                       own_piece(device, what.entry.bytes.data(), body),
                       own_piece(device, what.entry.bytes.data() + body, 1)};
    const std::size_t skipped = data_in_front ? 0 : 1;
    return device.outside.move(std::span(to).subspan(skipped), std::span(from).subspan(skipped));
}

void trace(environment& device, std::uint32_t cqn, const completion& what)
{
    const std::string text = "cq " + std::to_string(cqn) + " " + prm::decode_cqe(what.entry.bytes);
    device.outside.trace(text);
}

} // namespace

std::optional<std::uint32_t> entries_waiting(environment& device, const cq_record& cq)
{
    const auto consumer = read_consumer(device, cq);
    return consumer ? std::optional((cq.producer - *consumer) & counter_mask) : std::nullopt;
}

bool complete(environment& device, std::uint32_t cqn, completion& what)
{
    cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || cq->overflowed) {
        return false;
    }
    if (!cq->overrun_ignore && full(device, *cq)) {
        lose(device, *cq);
        return false;
    }
    const auto entry = *what.entry;
    entry.put(cqe64::owner, ((cq->producer >> cq->log_size) & 1) != 0);
    const move_status written = write(device, *cq, what);
    if (written != move_status::ok) {
        if (written == move_status::fault_to) {
            lose(device, *cq);
        }
        return false;
    }
    cq->producer++;
    device.memory.counts.completions++;
    const bool error = is_error(entry.get(cqe64::opcode));
    device.memory.counts.error_completions += error;
    if (device.outside.tracing()) {
        trace(device, cqn, what);
    }
    const bool solicited = error || entry.get(cqe64::solicited);
    if (solicited) {
        cq->solicited_upto = cq->producer;
    }
    if (cq->armed == cq_arm::any_completion || (cq->armed == cq_arm::solicited_only && solicited)) {
        fire(device, *cq, cq->arm_sequence);
    }
    return true;
}

void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer)
{
    cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || (cq->event_fired && sequence == cq->arm_sequence)) {
        return;
    }
    cq->event_fired           = false;
    const std::uint32_t ahead = kind == cq_arm::any_completion ? cq->producer : cq->solicited_upto;
    if (kind != cq_arm::none && entries_behind(consumer, ahead) != 0) {
        fire(device, *cq, sequence);
        return;
    }
    cq->armed        = kind;
    cq->arm_sequence = sequence;
}

} // namespace ucxl::softhca
