// What makes queues progress: doorbells, and calls that look for work without one.
#include <array>
#include <cstring>
#include <utility>

#include "fabric.h"
#include "prm/doorbell.h"
#include "prm/wqe.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/clients/client.h"
#include "softhca/core/queues/completion.h"
#include "softhca/core/queues/queue_work.h"

namespace ucxl::softhca
{

namespace
{

// WQEs executed before another process may have the lock.
constexpr unsigned wqes_at_a_time = 64;

struct outcome {
    bool any        = false; // something happened
    bool unfinished = false; // and more may be there
};

// Executes what a queue pair can do now, or the beginning of it. Under the lock.
outcome run_some(environment& device, std::uint32_t qpn)
{
    const qp_record* const qp = device.memory.qps.find(qpn);
    if (qp == nullptr || qp->owner.client != device.self) {
        return {};
    }
    const std::uint16_t before = qp->send.consumed;
    const bool sent            = run_send_queue(device, qpn, wqes_at_a_time);
    const auto blocks          = static_cast<std::uint16_t>(qp->send.consumed - before);
    const bool flushed         = flush_queue_pair(device, qpn);
    // A WQE has at least one block: fewer blocks than WQEs allowed means that the queue is empty.
    return {sent || flushed, sent && (blocks >= wqes_at_a_time || device.turn.used_up())};
}

// One turn of the queue pairs, starting at index `at`, under the lock. Ends when a queue pair has used up its turn, or
// when none has anything left to do.
template <typename List>
void run_turn(environment& device, const List& queue_pairs, std::size_t& at, outcome& all)
{
    all.unfinished = false;
    device.turn    = {};
    for (std::size_t done = 0; done < queue_pairs.size(); ++done) {
        at                = at < queue_pairs.size() ? at : 0;
        const outcome one = run_some(device, queue_pairs[at++]);
        all.any           = all.any || one.any;
        all.unfinished    = all.unfinished || one.unfinished;
        if (device.turn.used_up()) {
            return;
        }
    }
}

// Doorbell records count, also those that a reset has left behind. Under the lock.
template <typename List>
void believe_records(environment& device, const List& queue_pairs)
{
    for (const std::uint32_t qpn : queue_pairs) {
        qp_record* const qp = device.memory.qps.find(qpn);
        if (qp != nullptr && qp->owner.client == device.self) {
            qp->send.is_record_old = false;
        }
    }
}

// Executes the queue pairs until they have nothing to do. Others get the lock in between. Modelled time (--times) is
// spent without it.
template <typename List>
bool run(environment& device, const List& queue_pairs, bool rung)
{
    outcome all;
    std::size_t at = 0;
    while (true) {
        std::uint64_t owed_ns = 0;
        {
            const locked guard(device);
            apply_due_changes(device);
            if (std::exchange(rung, false)) {
                believe_records(device, queue_pairs);
            }
            run_turn(device, queue_pairs, at, all);
            owed_ns = std::exchange(device.owed_ns, 0);
        }
        if (owed_ns != 0) {
            device.outside.spend(owed_ns);
        }
        if (!all.unfinished) {
            return all.any;
        }
        device.outside.give_way();
    }
}

void ring_completion_queue(environment& device, std::uint32_t uar, prm::const_view<prm::cq_doorbell> bell)
{
    const std::uint32_t cqn   = bell.get(prm::cq_doorbell::cqn);
    const cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || cq->owner.client != device.self || cq->uar != uar) {
        return;
    }
    const bool solicited = bell.get(prm::cq_doorbell::arm_kind) == prm::cq_arm_kind::solicited_only;
    arm_completion_queue(device, cqn, bell.get(prm::cq_doorbell::arm_sequence),
                         solicited ? cq_arm::solicited_only : cq_arm::any_completion,
                         bell.get(prm::cq_doorbell::consumer_counter));
}

} // namespace

// An invalid doorbell is ignored without a word, as on the device.
void fabric::doorbell(std::uint32_t uar, std::size_t offset, std::uint64_t value)
{
    std::array<std::byte, prm::wqe_control_segment::size_bytes> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(value));
    const std::uint32_t qpn = prm::const_view<prm::wqe_control_segment>(bytes).get(prm::wqe_control_segment::qpn);
    bool sends              = false;
    {
        const locked guard(_device);
        const uar_record* const page = _device.memory.uars.find(uar);
        if (page == nullptr || page->owner.client != _device.self) {
            return;
        }
        ++_device.memory.counts.doorbells;
        if (offset == prm::uar_cq_doorbell_offset) {
            const auto bell = std::span(bytes).first<prm::cq_doorbell::size_bytes>();
            return ring_completion_queue(_device, uar, prm::const_view<prm::cq_doorbell>(bell));
        }
        const qp_record* const qp = _device.memory.qps.find(qpn);
        sends                     = offset >= prm::uar_send_doorbell_offset && qp != nullptr && qp->uar == uar;
    }
    if (sends) {
        progress_queue_pair(qpn);
    }
}

bool fabric::progress(bool doorbells_missed)
{
    return run(_device, _queue_pairs, doorbells_missed);
}

bool fabric::progress_queue_pair(std::uint32_t qpn)
{
    return run(_device, std::array{qpn}, true);
}

} // namespace ucxl::softhca
