#include "live_files.h"

#include <format>
#include <iterator>

namespace ucxl::softhca
{

namespace
{

struct counter_file {
    const char* name;
    std::uint64_t port_counters::* counter; // null: the device has nothing to count there
};

// In the order of the kernel (drivers/infiniband/core/sysfs.c).
constexpr counter_file counters[] = {
    {"symbol_error", nullptr},
    {"link_error_recovery", nullptr},
    {"link_downed", &port_counters::link_downed},
    {"port_rcv_errors", nullptr},
    {"port_rcv_remote_physical_errors", nullptr},
    {"port_rcv_switch_relay_errors", nullptr},
    {"port_xmit_discards", &port_counters::discarded},
    {"port_xmit_constraint_errors", nullptr},
    {"port_rcv_constraint_errors", nullptr},
    {"local_link_integrity_errors", nullptr},
    {"excessive_buffer_overrun_errors", nullptr},
    {"VL15_dropped", nullptr},
    {"port_xmit_data", &port_counters::sent_words},
    {"port_rcv_data", &port_counters::received_words},
    {"port_xmit_packets", &port_counters::sent_packets},
    {"port_rcv_packets", &port_counters::received_packets},
    {"port_xmit_wait", nullptr},
    {"unicast_xmit_packets", &port_counters::sent_packets},
    {"unicast_rcv_packets", &port_counters::received_packets},
    {"multicast_xmit_packets", nullptr},
    {"multicast_rcv_packets", nullptr},
};

// In the order of the driver (drivers/infiniband/hw/mlx5/counters.c): basic, out of sequence, retransmissions, errors.
constexpr counter_file hw_counters[] = {
    {"rx_write_requests", &port_counters::rx_write_requests},
    {"rx_read_requests", &port_counters::rx_read_requests},
    {"rx_atomic_requests", &port_counters::rx_atomic_requests},
    {"out_of_buffer", &port_counters::out_of_buffer},
    {"out_of_sequence", &port_counters::out_of_sequence},
    {"duplicate_request", &port_counters::duplicate_request},
    {"rnr_nak_retry_err", &port_counters::rnr_nak_retry_err},
    {"packet_seq_err", &port_counters::packet_seq_err},
    {"implied_nak_seq_err", nullptr},
    {"local_ack_timeout_err", &port_counters::local_ack_timeout_err},
    {"resp_local_length_error", &port_counters::resp_local_length_error},
    {"resp_cqe_error", &port_counters::resp_cqe_error},
    {"req_cqe_error", &port_counters::req_cqe_error},
    {"req_remote_invalid_request", &port_counters::req_remote_invalid_request},
    {"req_remote_access_errors", &port_counters::req_remote_access_errors},
    {"resp_remote_access_errors", &port_counters::resp_remote_access_errors},
    {"resp_cqe_flush_error", &port_counters::resp_cqe_flush_error},
    {"req_cqe_flush_error", &port_counters::req_cqe_flush_error},
    {"req_transport_retries_exceeded", &port_counters::req_transport_retries_exceeded},
    {"req_rnr_retries_exceeded", &port_counters::req_rnr_retries_exceeded},
};

constexpr std::uint32_t first_counter    = 0x100;
constexpr std::uint32_t first_hw_counter = 0x200;

std::uint64_t counted(const port_counters& all, const counter_file& file)
{
    return file.counter != nullptr ? all.*file.counter : 0;
}

} // namespace

std::vector<live_file> port_files()
{
    std::vector<live_file> files = {
        {"state", sysfs_value::state},
        {"phys_state", sysfs_value::physical_state},
        {"rate", sysfs_value::rate},
        {"lid", sysfs_value::lid},
    };
    for (std::uint32_t i = 0; i < std::size(counters); ++i) {
        files.push_back({std::format("counters/{}", counters[i].name), sysfs_value{first_counter + i}});
    }
    for (std::uint32_t i = 0; i < std::size(hw_counters); ++i) {
        files.push_back({std::format("hw_counters/{}", hw_counters[i].name), sysfs_value{first_hw_counter + i}});
    }
    return files;
}

bool live_files::present(function_id function) const
{
    return _device.function(function).condition != device_condition::removed;
}

std::string live_files::text(function_id function, sysfs_value value) const
{
    const function_record record = _device.function(function);
    switch (value) {
    case sysfs_value::none:
        return {};
    case sysfs_value::state:
        return record.port_up ? "4: ACTIVE\n" : "1: DOWN\n";
    case sysfs_value::physical_state:
        return record.port_up ? "5: LinkUp\n" : "2: Polling\n";
    case sysfs_value::rate:
        return record.port_up ? "400 Gb/sec (4X NDR)\n" : "10 Gb/sec (4X SDR)\n";
    case sysfs_value::lid:
        return std::format("{:#x}\n", record.lid);
    }
    const port_counters all = _device.counters(function);
    const auto index        = std::to_underlying(value);
    const bool from_queues  = index >= first_hw_counter;
    return std::format(
        "{}\n", counted(all, from_queues ? hw_counters[index - first_hw_counter] : counters[index - first_counter]));
}

} // namespace ucxl::softhca
