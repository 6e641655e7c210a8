#include "port_traffic.h"

#include "connection.h"
#include "prm/wqe.h"
#include "softhca/core/arena/device_failure.h"

namespace ucxl::softhca
{

namespace
{

using prm::cqe_syndrome;
using prm::wqe_opcode;
using outcome = answer::outcome;

// The headers of packets, in bytes (IBTA vol. 1, 5.2.1 and 9.2 to 9.3).
constexpr std::uint64_t packet_bytes          = 8 + 12 + 4; // local route, base transport, invariant CRC
constexpr std::uint64_t route_bytes           = 40;
constexpr std::uint64_t rdma_bytes            = 16;
constexpr std::uint64_t atomic_bytes          = 28;
constexpr std::uint64_t immediate_bytes       = 4; // also the key that a send invalidates
constexpr std::uint64_t datagram_bytes        = 8;
constexpr std::uint64_t acknowledge_bytes     = 4;
constexpr std::uint64_t atomic_response_bytes = 8;
constexpr std::uint64_t word_bytes            = 4;

struct traffic {
    std::uint64_t packets = 1;
    std::uint64_t bytes   = packet_bytes;
};

traffic carry(const qp_record& qp, std::uint64_t payload, std::uint64_t more_bytes)
{
    const std::uint64_t packets = packets_of(qp, payload);
    const std::uint64_t each    = packet_bytes + (qp.path.has_grh ? route_bytes : 0);
    return {packets, packets * each + (payload + word_bytes - 1) / word_bytes * word_bytes + more_bytes};
}

traffic request_traffic(const qp_record& sender, const send_request& request)
{
    if (is_atomic(request.opcode)) {
        return carry(sender, 0, atomic_bytes);
    }
    const std::uint64_t length = request.data.length();
    switch (request.opcode) {
    case wqe_opcode::rdma_write:
        return carry(sender, length, rdma_bytes);
    case wqe_opcode::rdma_write_imm:
        return carry(sender, length, rdma_bytes + immediate_bytes);
    case wqe_opcode::rdma_read:
        return carry(sender, 0, rdma_bytes);
    case wqe_opcode::send_imm:
    case wqe_opcode::send_invalidate:
        return carry(sender, length, immediate_bytes);
    default:
        return carry(sender, length, 0);
    }
}

// Reads are answered by their data, in packets of which the first and the last acknowledge.
traffic response_traffic(const qp_record& peer, const send_request& request, bool done)
{
    if (done && request.opcode == wqe_opcode::rdma_read) {
        traffic data = carry(peer, request.data.length(), acknowledge_bytes);
        data.bytes += data.packets > 1 ? acknowledge_bytes : 0;
        return data;
    }
    const bool brings_value = done && is_atomic(request.opcode);
    return carry(peer, 0, acknowledge_bytes + (brings_value ? atomic_response_bytes : 0));
}

void count_sent(port_counters& port, const traffic& sent)
{
    port.sent_packets += sent.packets;
    port.sent_words += sent.bytes / word_bytes;
}

void count_received(port_counters& port, const traffic& received)
{
    port.received_packets += received.packets;
    port.received_words += received.bytes / word_bytes;
}

void count_request(port_counters& port, wqe_opcode opcode)
{
    port.rx_atomic_requests += is_atomic(opcode);
    switch (opcode) {
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_imm:
        port.rx_write_requests++;
        return;
    case wqe_opcode::rdma_read:
        port.rx_read_requests++;
        return;
    default:
        return;
    }
}

// Counts the request on its way. False when it cannot leave, or reaches nobody.
bool count_on_its_way(arena& memory, const qp_record& sender, const qp_record* peer, const traffic& sent)
{
    port_counters& here = counters_of(memory, sender);
    if (!port_is_up(memory, sender.owner.function)) {
        here.discarded += sent.packets;
        return false;
    }
    count_sent(here, sent);
    if (peer != nullptr) {
        count_received(counters_of(memory, *peer), sent);
    }
    return peer != nullptr;
}

} // namespace

void count_exchange(arena& memory, const qp_record& sender, const qp_record* peer, bool expected,
                    const send_request& request, const answer& result)
{
    if (result.own_fault || result.result == outcome::part_done ||
        !count_on_its_way(memory, sender, peer, request_traffic(sender, request))) {
        return;
    }
    port_counters& here  = counters_of(memory, sender);
    port_counters& there = counters_of(memory, *peer);
    if (!expected) {
        there.out_of_sequence++;
        here.packet_seq_err++;
        return;
    }
    count_request(there, request.opcode);
    there.out_of_buffer += result.result == outcome::not_ready;
    if (!is_reliable(sender.service) || result.result == outcome::lost) {
        return;
    }
    here.rnr_nak_retry_err += result.result == outcome::not_ready;
    there.resp_remote_access_errors +=
        result.result == outcome::refused && result.syndrome == cqe_syndrome::remote_access;
    const traffic response = response_traffic(*peer, request, result.result == outcome::done);
    count_sent(there, response);
    count_received(here, response);
}

void count_datagram(arena& memory, const qp_record& sender, const qp_record* peer, const send_request& request)
{
    traffic sent = request_traffic(sender, request);
    sent.bytes += datagram_bytes;
    count_on_its_way(memory, sender, peer, sent);
}

void count_failed_send(arena& memory, const qp_record& sender, cqe_syndrome syndrome)
{
    port_counters& port = counters_of(memory, sender);
    if (syndrome == cqe_syndrome::flushed) {
        port.req_cqe_flush_error++;
        return;
    }
    port.req_cqe_error++;
    port.req_remote_invalid_request += syndrome == cqe_syndrome::remote_invalid_request;
    port.req_remote_access_errors += syndrome == cqe_syndrome::remote_access;
    port.req_transport_retries_exceeded += syndrome == cqe_syndrome::transport_retry_exceeded;
    port.req_rnr_retries_exceeded += syndrome == cqe_syndrome::rnr_retry_exceeded;
}

void count_failed_receive(arena& memory, const qp_record& receiver, cqe_syndrome syndrome)
{
    port_counters& port = counters_of(memory, receiver);
    if (syndrome == cqe_syndrome::flushed) {
        port.resp_cqe_flush_error++;
        return;
    }
    port.resp_cqe_error++;
    port.resp_local_length_error += syndrome == cqe_syndrome::local_length;
}

} // namespace ucxl::softhca
