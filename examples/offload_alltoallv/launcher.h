// Starts hosts and DPU processes, hands their messages on, and stops all hosts while anything is moved.
#pragma once

#include "role.h"

#include <chrono>
#include <string>
#include <vector>

namespace examples
{

struct launcher_options {
    role_options roles;
    std::string host_device = "mlx5_0";
    std::string dpu_device  = "mlx5_1";
    std::vector<std::string> dpu_command; // starts a DPU process; empty: this program
    std::chrono::seconds limit{300};
};

struct exchange_result {
    // What each process said at its end, as JSON, in the order of the hosts.
    std::vector<std::string> hosts;
    std::vector<std::string> dpus;
    std::uint64_t looks     = 0; // at all hosts, while they had to be stopped
    unsigned repeated_stops = 0; // because a host was stopped in the middle of its use of the device
    double stopped_ms       = 0; // of all rounds
};

// Throws if anything fails. No process is left in any case.
exchange_result run_exchange(const launcher_options& options);

} // namespace examples
