#include "completion_event.h"

#include "completion.h"
#include "prm/eq.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t counter_mask = 0xffffff; // consumer counters have 24 bits

// The distance of `ahead` from a consumer counter; 0 when it is not ahead.
std::uint32_t entries_behind(std::uint32_t consumer, std::uint32_t ahead)
{
    const std::uint32_t distance = (ahead - consumer) & counter_mask;
    return distance <= counter_mask / 2 ? distance : 0;
}

void fire(environment& device, cq_record& cq, std::uint8_t sequence)
{
    cq.armed                 = cq_arm::none;
    cq.arm_sequence          = sequence;
    const std::uint32_t sent = cq.completion_events.sent;
    device.memory.counts.completion_events++;
    device.outside.notify(cq.owner.client, cq.completion_events,
                          static_cast<std::uint32_t>(prm::event_type::completion));
    // Nobody gets an event that was lost, or has no channel, and increments the sequence number.
    cq.event_fired = cq.completion_events.sent != sent;
}

} // namespace

void announce_completion(environment& device, cq_record& cq, bool solicited)
{
    if (solicited) {
        cq.solicited_upto = cq.producer;
    }
    if (cq.armed == cq_arm::any_completion || (cq.armed == cq_arm::solicited_only && solicited)) {
        fire(device, cq, cq.arm_sequence);
    }
}

void lose_completion_queue(environment& device, cq_record& cq, prm::cq_error_reason reason)
{
    cq.overflowed = true;
    device.memory.counts.async_events++;
    device.outside.notify(cq.owner.client, cq.error_events, event_code(prm::event_type::cq_error, reason));
}

void arm_completion_queue(environment& device, std::uint32_t cqn, std::uint8_t sequence, cq_arm kind,
                          std::uint32_t consumer)
{
    release_completion(device, cqn); // who waits for an event does not poll
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
