#include "send_ring.h"

#include <algorithm>

#include "prm/doorbell.h"

namespace ucxl::softhca
{

namespace
{

struct ring_head {
    prm::storage<prm::qp_doorbell_record> record;
    prm::storage<prm::wqe_control_segment> control;
};

posted posted_of(queue_access access)
{
    return access == queue_access::gone ? posted::gone : posted::broken;
}

std::uint32_t ring_blocks(const qp_record& qp)
{
    return 1U << qp.send.log_size;
}

std::optional<piece> blocks_of(const qp_record& qp, std::uint32_t first, std::uint64_t length)
{
    return part_of(qp.buffer, qp.send.offset + std::uint64_t{first} * prm::wqe_block_bytes, length);
}

// Reads the doorbell record and the first `length` bytes at the given place in one move. The record comes first,
// so a WQE that it counts was complete before it was read.
queue_access read_head(environment& device, const qp_record& qp, std::uint16_t at, std::span<std::byte> first,
                       prm::storage<prm::qp_doorbell_record>& record)
{
    const auto doorbell = part_of(qp.doorbell, 0, record.bytes.size());
    const auto block    = blocks_of(qp, at & (ring_blocks(qp) - 1), first.size());
    if (!doorbell || !block) {
        return queue_access::broken;
    }
    const piece from[]{*doorbell, *block};
    const piece to[]{own_piece(device, record.bytes.data(), record.bytes.size()),
                     own_piece(device, first.data(), first.size())};
    switch (device.outside.move(to, from)) {
    case move_status::ok:
        return queue_access::ok;
    case move_status::gone_to:
    case move_status::gone_from:
        return queue_access::gone;
    case move_status::fault_to:
    case move_status::fault_from:
        break;
    }
    return queue_access::broken;
}

// The number of blocks of the WQE, from its first 16 bytes, and whether that number is allowed.
void measure(const qp_record& qp, std::uint16_t at, posted_send& next)
{
    const prm::const_view<prm::wqe_control_segment> control(
        std::span(next.bytes).first<prm::wqe_control_segment::size_bytes>());
    const std::size_t length = std::size_t{control.get(prm::wqe_control_segment::ds)} * prm::wqe_unit_bytes;
    const auto blocks        = static_cast<unsigned>((length + prm::wqe_block_bytes - 1) / prm::wqe_block_bytes);
    const unsigned available = static_cast<std::uint16_t>(qp.send.rung - at);
    const bool sane          = blocks != 0 && blocks <= available && blocks <= ring_blocks(qp);
    next.blocks              = std::clamp(blocks, 1U, available);
    next.length              = sane ? length : 0;
}

posted read_first(environment& device, qp_record& qp, std::uint16_t at, posted_send& next, std::size_t bytes)
{
    prm::storage<prm::qp_doorbell_record> record;
    const auto access = read_head(device, qp, at, std::span(next.bytes).first(bytes), record);
    if (access != queue_access::ok) {
        return posted_of(access);
    }
    const std::uint16_t counter = (*record).get(prm::qp_doorbell_record::send_counter);
    if (qp.send.is_record_old && counter == qp.send.old_record) {
        return posted::none;
    }
    qp.send.is_record_old = false;
    qp.send.rung          = counter;
    if (qp.send.rung == at) {
        return posted::none;
    }
    measure(qp, at, next);
    return posted::one;
}

// Reads the blocks after the first; they may wrap to the start of the ring.
queue_access read_rest(environment& device, const qp_record& qp, std::uint16_t at, posted_send& next)
{
    const std::uint32_t size    = ring_blocks(qp);
    const std::uint32_t begin   = (at + 1U) & (size - 1);
    const std::uint32_t wanted  = next.blocks - 1;
    const std::uint32_t in_line = std::min(wanted, size - begin);
    const auto before           = blocks_of(qp, begin, std::uint64_t{in_line} * prm::wqe_block_bytes);
    const auto wrapped          = blocks_of(qp, 0, std::uint64_t{wanted - in_line} * prm::wqe_block_bytes);
    if (!before || !wrapped) {
        return queue_access::broken;
    }
    const piece from[]{*before, *wrapped};
    return read_queue(device, std::span(from).first(wanted == in_line ? 1 : 2),
                      next.bytes.data() + prm::wqe_block_bytes, before->length + wrapped->length);
}

} // namespace

posted read_send(environment& device, qp_record& qp, std::uint16_t at, posted_send& next)
{
    const posted first = read_first(device, qp, at, next, prm::wqe_block_bytes);
    if (first != posted::one || next.length <= prm::wqe_block_bytes) {
        return first;
    }
    const auto access = read_rest(device, qp, at, next);
    return access == queue_access::ok ? posted::one : posted_of(access);
}

posted read_send_control(environment& device, qp_record& qp, std::uint16_t at, posted_send& next)
{
    return read_first(device, qp, at, next, prm::wqe_control_segment::size_bytes);
}

} // namespace ucxl::softhca
