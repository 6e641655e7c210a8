#include "receive_queue.h"

#include <algorithm>
#include <array>
#include <string>

#include "async_events.h"
#include "prm/decode.h"
#include "prm/doorbell.h"
#include "prm/wqe.h"

namespace ucxl::softhca
{

namespace
{

// The counter and the entry, side by side, so that one move reads both. The counter comes first: an entry that it
// counts was complete before it was read.
struct head_and_entry {
    head_and_entry() {} // NOLINT(modernize-use-equals-default): nothing is to be zeroed

    alignas(8) std::array<std::byte, 8> head;
    alignas(16) std::array<std::byte, max_receive_bytes> entry;
};

received read_both(environment& device, const process_memory& doorbell, const process_memory& buffer,
                   std::uint64_t offset, std::size_t entry_bytes, head_and_entry& both)
{
    const auto record = part_of(doorbell, 0, both.head.size());
    const auto entry  = part_of(buffer, offset, entry_bytes);
    if (!record || !entry) {
        return received::broken;
    }
    const piece from[]{*record, *entry};
    const piece to[]{own_piece(device, both.head.data(), both.head.size()),
                     own_piece(device, both.entry.data(), entry_bytes)};
    switch (device.outside.move(to, from)) {
    case move_status::ok:
        return received::one;
    case move_status::gone_to:
    case move_status::gone_from:
        return received::gone;
    case move_status::fault_to:
    case move_status::fault_from:
        break;
    }
    return received::broken;
}

std::size_t entry_bytes(std::uint8_t log_stride)
{
    return std::clamp<std::size_t>(std::size_t{1} << std::min<unsigned>(log_stride, 12), 16, max_receive_bytes);
}

// An entry that is not full ends with a segment of length 0 and the invalid key.
void read_segments(std::span<const std::byte> bytes, posted_receive& next)
{
    using segment = prm::wqe_data_segment;
    const prm::view_list<segment, const std::byte> segments(bytes);
    for (std::size_t i = 0; i < segments.size(); i++) {
        const auto one             = segments[i];
        const std::uint32_t length = one.get(segment::byte_count);
        const std::uint32_t key    = one.get(segment::lkey);
        if (length == 0 && key == prm::invalid_lkey) {
            return;
        }
        next.data.add({key, one.get(segment::addr), length, nullptr});
    }
}

void trace(environment& device, std::string_view whose, std::span<const std::byte> entry, bool headed)
{
    if (device.outside.tracing()) {
        device.outside.trace(std::string(whose) + prm::decode_receive_wqe(entry, headed));
    }
}

received read_own(environment& device, const qp_record& qp, posted_receive& next)
{
    const receive_queue_state& queue = qp.receive;
    if (!queue.present) {
        return received::none;
    }
    const std::uint32_t slot = queue.consumed & ((1U << queue.log_size) - 1);
    const std::size_t size   = entry_bytes(queue.log_stride);
    head_and_entry both;
    const received result =
        read_both(device, qp.doorbell, qp.buffer, queue.offset + (std::uint64_t{slot} << queue.log_stride), size, both);
    if (result != received::one) {
        return result;
    }
    const prm::const_view<prm::qp_doorbell_record> record(both.head);
    if (record.get(prm::qp_doorbell_record::receive_counter) == queue.consumed) {
        return received::none;
    }
    next.index         = queue.consumed;
    next.counter_after = static_cast<std::uint16_t>(queue.consumed + 1);
    next.pd            = qp.pd;
    read_segments(std::span(both.entry).first(size), next);
    trace(device, "receive queue ", std::span(both.entry).first(size), false);
    return received::one;
}

// The index of a linked entry; of entries in order the running counter, because the CQE names the entry by it.
received read_shared(environment& device, const srq_record& srq, posted_receive& next)
{
    if (srq.failed) {
        return received::none;
    }
    const std::uint32_t mask = (1U << srq.log_size) - 1;
    const std::uint32_t slot = (srq.linked ? srq.next : srq.consumed) & mask;
    const std::size_t size   = entry_bytes(srq.log_stride);
    head_and_entry both;
    const received result =
        read_both(device, srq.doorbell, srq.buffer, std::uint64_t{slot} << srq.log_stride, size, both);
    if (result != received::one) {
        return result;
    }
    const prm::const_view<prm::srq_doorbell_record> record(both.head);
    if (record.get(prm::srq_doorbell_record::counter) == srq.consumed) {
        return received::none;
    }
    using link = prm::wqe_srq_next_segment;
    const prm::const_view<link> head(std::span(both.entry).first<link::size_bytes>());
    next.counter_after = static_cast<std::uint16_t>(srq.consumed + 1);
    next.index         = srq.linked ? static_cast<std::uint16_t>(slot) : srq.consumed;
    next.next          = static_cast<std::uint16_t>(head.get(link::next_wqe_index) & mask);
    next.pd            = srq.pd;
    read_segments(std::span(both.entry).first(size).subspan(srq.headed ? link::size_bytes : 0), next);
    trace(device, "shared receive queue ", std::span(both.entry).first(size), srq.headed);
    return received::one;
}

} // namespace

received read_next_receive(environment& device, const qp_record& qp, posted_receive& next)
{
    if (qp.srq == 0) {
        return read_own(device, qp, next);
    }
    const srq_record* const srq = device.memory.srqs.find(qp.srq);
    return srq == nullptr ? received::none : read_shared(device, *srq, next);
}

queue_step step_past(const qp_record& qp, std::uint32_t qpn, const posted_receive& taken)
{
    using kind = queue_step::kind;
    if (qp.srq == 0) {
        return {kind::receives, qpn, taken.counter_after, 0};
    }
    return {kind::shared_receives, qp.srq, taken.counter_after, taken.next};
}

// Reads the counter again only for a queue with a limit.
void check_receive_limit(environment& device, const qp_record& qp)
{
    srq_record* const srq = device.memory.srqs.find(qp.srq);
    if (srq == nullptr || srq->limit == 0) {
        return;
    }
    prm::storage<prm::srq_doorbell_record> record;
    const auto from = part_of(srq->doorbell, 0, record.bytes.size());
    if (!from || read_queue(device, {&*from, 1}, record.bytes.data(), record.bytes.size()) != queue_access::ok) {
        return;
    }
    const auto left = static_cast<std::uint16_t>((*record).get(prm::srq_doorbell_record::counter) - srq->consumed);
    if (left < srq->limit) {
        srq->limit = 0;
        notify_shared_receive_queue(device, *srq, prm::event_type::srq_limit_reached);
    }
}

} // namespace ucxl::softhca
