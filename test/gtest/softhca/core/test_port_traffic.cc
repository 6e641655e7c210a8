// The counters of ports: what each message adds at both ends.
#include "connected_pair.h"

#include "softhca/core/arena/device_failure.h"

namespace ucxl::softhca::test
{

namespace
{

constexpr std::uint64_t base_words        = (8 + 12 + 4) / 4; // of every packet
constexpr std::uint64_t rdma_words        = 16 / 4;
constexpr std::uint64_t acknowledge_words = 4 / 4;

// Two ports, so that both directions can be told apart.
class port_traffic : public connected_pair
{
protected:
    explicit port_traffic(qp_service carried_by = qp_service::rc)
        : connected_pair(carried_by, {.devices = 2, .functions_per_device = 1})
    {
        for (made_qp* const each : {&a, &b}) {
            each->record().path.mtu = 3; // 1024 bytes
        }
        b.record().owner.function                             = 1;
        machine.memory().find_key(target_key)->owner.function = 1;
        queue_kit::connect(a, b);
        a.record().path.mtu = 3;
        b.record().path.mtu = 3;
    }

    port_counters& here() { return machine.memory().ports[0]; }
    port_counters& there() { return machine.memory().ports[1]; }

    void run(const work_request& request)
    {
        a.post(request);
        a.run();
    }
};

TEST_F(port_traffic, a_write_is_counted_in_packets_of_the_path_and_answered_by_one)
{
    run(write(0, 3000));
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(here().sent_packets, 3u);
    EXPECT_EQ(here().sent_words, 3 * base_words + rdma_words + 3000 / 4);
    EXPECT_EQ(there().received_packets, 3u);
    EXPECT_EQ(there().received_words, here().sent_words);
    EXPECT_EQ(there().sent_packets, 1u);
    EXPECT_EQ(there().sent_words, base_words + acknowledge_words);
    EXPECT_EQ(here().received_words, there().sent_words);
    EXPECT_EQ(there().rx_write_requests, 1u);
    EXPECT_EQ(here().rx_write_requests, 0u);
}

TEST_F(port_traffic, payload_is_padded_to_words)
{
    b.post_receive(into(0, 16));
    run(send(5));
    EXPECT_EQ(here().sent_words, base_words + 2);
}

TEST_F(port_traffic, a_read_is_one_packet_there_and_its_data_back)
{
    run(work_request(wqe_opcode::rdma_read)
            .remote(address_of(target), target_key)
            .data(source_key, address_of(source), 2048)
            .signaled());
    EXPECT_FALSE(only(a_sends).failed());
    EXPECT_EQ(here().sent_packets, 1u);
    EXPECT_EQ(here().sent_words, base_words + rdma_words);
    EXPECT_EQ(here().received_packets, 2u);
    EXPECT_EQ(here().received_words, 2 * (base_words + acknowledge_words) + 2048 / 4);
    EXPECT_EQ(there().rx_read_requests, 1u);
}

TEST_F(port_traffic, a_peer_without_receives_says_so)
{
    run(send(8));
    EXPECT_EQ(there().out_of_buffer, 1u);
    EXPECT_EQ(here().rnr_nak_retry_err, 1u);
    EXPECT_EQ(here().received_packets, 1u);
}

TEST_F(port_traffic, refusals_are_counted_at_both_ends)
{
    run(work_request(wqe_opcode::rdma_write)
            .remote(address_of(target), target_key + 0x100)
            .data(source_key, address_of(source), 8)
            .signaled());
    EXPECT_EQ(only(a_sends).syndrome(), cqe_syndrome::remote_access);
    EXPECT_EQ(here().req_remote_access_errors, 1u);
    EXPECT_EQ(here().req_cqe_error, 1u);
    EXPECT_EQ(there().resp_remote_access_errors, 1u);
    a.post(write(0, 8));
    a.flush();
    EXPECT_EQ(here().req_cqe_flush_error, 1u);
    b.post_receive(into(0, 16));
    b.flush();
    EXPECT_EQ(there().resp_cqe_flush_error, 1u);
}

TEST_F(port_traffic, a_message_that_is_too_long_is_an_error_of_its_receive)
{
    b.post_receive(into(0, 4));
    run(send(8));
    EXPECT_EQ(there().resp_local_length_error, 1u);
    EXPECT_EQ(there().resp_cqe_error, 1u);
    EXPECT_EQ(here().req_remote_invalid_request, 1u);
}

TEST_F(port_traffic, an_own_error_sends_nothing)
{
    run(work_request(wqe_opcode::rdma_write)
            .remote(address_of(target), target_key)
            .data(source_key + 0x100, address_of(source), 8)
            .signaled());
    EXPECT_EQ(only(a_sends).syndrome(), cqe_syndrome::local_protection);
    EXPECT_EQ(here().sent_packets, 0u);
    EXPECT_EQ(here().req_cqe_error, 1u);
}

TEST_F(port_traffic, what_is_lost_was_sent_and_what_cannot_be_sent_is_discarded)
{
    machine.memory().faults.rules[0] = {.kind = fault_kind::drop, .first = 1};
    run(write(0, 8));
    EXPECT_EQ(here().sent_packets, 1u);
    EXPECT_EQ(there().received_packets, 0u);
    near.device().change({.kind = change_kind::port_down, .function = 0});
    machine.time_ns += 4096ULL << 14;
    a.run();
    EXPECT_EQ(here().sent_packets, 1u);
    EXPECT_EQ(here().discarded, 1u);
    EXPECT_EQ(here().local_ack_timeout_err, 1u);
}

TEST_F(port_traffic, packets_out_of_sequence_are_seen_by_both)
{
    a.record().send.psn = 77;
    run(write(0, 8));
    EXPECT_EQ(there().out_of_sequence, 1u);
    EXPECT_EQ(here().packet_seq_err, 1u);
    EXPECT_EQ(there().rx_write_requests, 0u);
}

class datagram_traffic : public port_traffic
{
protected:
    datagram_traffic() : port_traffic(qp_service::ud) {}
};

TEST_F(datagram_traffic, a_datagram_is_one_packet_and_has_no_answer)
{
    const auto datagram = work_request(wqe_opcode::send)
                              .address(b.lid(), b.number, b.record().qkey)
                              .data(source_key, address_of(source), 8)
                              .signaled();
    run(datagram);
    EXPECT_EQ(here().sent_packets, 1u);
    EXPECT_EQ(here().sent_words, base_words + 8 / 4 + 8 / 4);
    EXPECT_EQ(there().received_packets, 1u);
    EXPECT_EQ(there().out_of_buffer, 1u);
    EXPECT_EQ(there().sent_packets, 0u);
    b.post_receive(into(0, 64));
    run(datagram);
    EXPECT_EQ(there().received_packets, 2u);
    EXPECT_EQ(there().out_of_buffer, 1u);
}

} // namespace

} // namespace ucxl::softhca::test
