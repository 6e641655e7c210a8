// The counters of a port, as sysfs shows them in ports/N/counters and ports/N/hw_counters. They change under the lock
// that the change they count is made under.
//
// The first ones are those of PortCounters and PortCountersExtended (IBTA vol. 1, 16.1.3.5 and 16.1.4.11). The device
// reports the traffic of its virtual port, so messages to itself count as well (pma_cnt_ext_assign in the kernel's
// infiniband/hw/mlx5/mad.c). The others are those of a queue counter set (QUERY_Q_COUNTER); their meanings are from
// NVIDIA's "Understanding mlx5 Linux Counters".
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

struct port_counters {
    // Traffic. Bytes are those between the start of a packet and its variant CRC, a whole number of four-byte words.
    std::uint64_t sent_words;
    std::uint64_t sent_packets;
    std::uint64_t received_words;
    std::uint64_t received_packets;
    std::uint64_t sent_multicast_packets;
    std::uint64_t received_multicast_packets;
    std::uint64_t discarded; // packets that could not be sent, because the port is down
    std::uint64_t link_downed;

    // As responder.
    std::uint64_t rx_write_requests;
    std::uint64_t rx_read_requests;
    std::uint64_t rx_atomic_requests;
    std::uint64_t out_of_buffer;   // no receive was posted
    std::uint64_t out_of_sequence; // packets with another sequence number than the expected one
    std::uint64_t duplicate_request;
    std::uint64_t resp_local_length_error;
    std::uint64_t resp_cqe_error;
    std::uint64_t resp_cqe_flush_error;
    std::uint64_t resp_remote_access_errors;

    // As requester.
    std::uint64_t rnr_nak_retry_err;     // RNR NAKs that came
    std::uint64_t packet_seq_err;        // NAKs about the sequence that came
    std::uint64_t local_ack_timeout_err; // expired timers
    std::uint64_t req_cqe_error;
    std::uint64_t req_cqe_flush_error;
    std::uint64_t req_remote_invalid_request;
    std::uint64_t req_remote_access_errors;
    std::uint64_t req_transport_retries_exceeded;
    std::uint64_t req_rnr_retries_exceeded;
};

} // namespace ucxl::softhca
