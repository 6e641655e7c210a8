#include "work_completion.h"

#include "port_traffic.h"
#include "prm/cq.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe64;
using prm::cqe64_error;
using prm::cqe_syndrome;

constexpr std::uint32_t number_mask = 0xffffff;

// The vendor syndrome, where logs of real devices show one. Nothing depends on it.
std::uint8_t vendor_syndrome(cqe_syndrome syndrome)
{
    switch (syndrome) {
    case cqe_syndrome::local_qp_operation:
        return 0x68;
    case cqe_syndrome::local_protection:
        return 0x51;
    case cqe_syndrome::flushed:
        return 0xf9;
    case cqe_syndrome::transport_retry_exceeded:
        return 0x81;
    case cqe_syndrome::remote_access:
        return 0x88;
    case cqe_syndrome::remote_operation:
        return 0x89;
    case cqe_syndrome::remote_invalid_request:
        return 0x8a;
    case cqe_syndrome::local_length:
    case cqe_syndrome::memory_window_bind:
    case cqe_syndrome::bad_response:
    case cqe_syndrome::local_access:
    case cqe_syndrome::rnr_retry_exceeded:
    case cqe_syndrome::remote_aborted:
        break;
    }
    return 0;
}

// The numbers fit in 24 bits: the tables are smaller than that.
template <typename Field>
void put_number(prm::view<cqe64> entry, Field field, std::uint32_t value)
{
    (void)entry.set(field, value & number_mask);
}

void make_error(completion& cqe, cqe_syndrome syndrome)
{
    const prm::view<cqe64_error> entry(cqe.entry.bytes);
    entry.put(cqe64_error::vendor_error_syndrome, vendor_syndrome(syndrome));
    (void)entry.set(cqe64_error::syndrome, syndrome);
}

// Half of a 128-byte CQE is unused.
bool is_padded(const cq_record& cq)
{
    return prm::const_view<prm::cqc>(std::as_bytes(std::span(cq.context))).get(prm::cqc::cqe_sz) ==
           prm::cqe_size::bytes_128_padded;
}

bool complete_or_step(environment& device, std::uint32_t cqn, completion& cqe, const queue_step& step)
{
    if (complete(device, cqn, cqe, step)) {
        return true;
    }
    take_step(device.memory, step);
    return false;
}

} // namespace

void describe_send(completion& cqe, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode, std::uint16_t index)
{
    const auto entry = *cqe.entry;
    put_number(entry, cqe64::srqn_uidx, qp.user_index);
    (void)entry.set(cqe64::sop_opcode, opcode);
    put_number(entry, cqe64::qpn, qpn);
    entry.put(cqe64::wqe_counter, index);
    entry.put<prm::cqe_opcode::requester>(cqe64::opcode);
}

void describe_receive(completion& cqe, const qp_record& qp, std::uint32_t qpn, prm::cqe_opcode opcode,
                      std::uint16_t index, std::uint32_t bytes)
{
    const auto entry = *cqe.entry;
    put_number(entry, cqe64::srqn_uidx, qp.user_index);
    put_number(entry, cqe64::qpn, qpn);
    entry.put(cqe64::byte_cnt, bytes);
    entry.put(cqe64::wqe_counter, index);
    (void)entry.set(cqe64::opcode, opcode);
}

bool complete_failed_send(environment& device, const qp_record& qp, std::uint32_t qpn, prm::wqe_opcode opcode,
                          std::uint16_t index, cqe_syndrome syndrome, const queue_step& step)
{
    count_failed_send(device.memory, qp, syndrome);
    completion cqe;
    describe_send(cqe, qp, qpn, opcode, index);
    make_error(cqe, syndrome);
    (*cqe.entry).put<prm::cqe_opcode::requester_error>(cqe64::opcode);
    return complete_or_step(device, qp.send_cq, cqe, step);
}

bool complete_failed_receive(environment& device, const qp_record& qp, std::uint32_t qpn, const posted_receive& taken,
                             cqe_syndrome syndrome)
{
    count_failed_receive(device.memory, qp, syndrome);
    completion cqe;
    describe_receive(cqe, qp, qpn, prm::cqe_opcode::responder_error, taken.index, 0);
    make_error(cqe, syndrome);
    const bool done = complete_or_step(device, qp.receive_cq, cqe, step_past(qp, qpn, taken));
    check_receive_limit(device, qp);
    return done;
}

prm::cqe_format inline_format(const environment& device, std::uint32_t cqn, prm::scatter_to_cqe limit,
                              std::uint64_t bytes)
{
    const unsigned units = static_cast<unsigned>(limit) & 3; // of 32 bytes; requests repeat them in the high half
    if (units == 0 || units == 3 || bytes == 0 || bytes > 64) {
        return prm::cqe_format::no_inline;
    }
    const cq_record* const cq = device.memory.cqs.find(cqn);
    if (cq == nullptr || cq->entry_size < 128 || is_padded(*cq) || units == 1) {
        return bytes <= 32 ? prm::cqe_format::inline_32 : prm::cqe_format::no_inline;
    }
    return prm::cqe_format::inline_64;
}

std::byte* inline_place(completion& cqe, prm::cqe_format format)
{
    return format == prm::cqe_format::inline_64 ? cqe.data.data() : cqe.entry.bytes.data();
}

} // namespace ucxl::softhca
