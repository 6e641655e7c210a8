// The text form of a fault rule (fault_rule.h), for --fault and SOFTHCA_FAULT:
//
//     command:create_mkey,first=3,times=2,status=limit_exceeded     the third and fourth fail
//     wqe:rdma_write,first=10,syndrome=remote_access                 the tenth completes with that error
//     delay:send,time=50us                                           every one, that much later
//     drop:rdma_read,times=3                                         the first three get lost on the wire
//     refuse:umr_start_addr                                          what a firmware may not do (fault_rule.h)
//     fatal:rdma_write,first=3                                       the device fails when it gets there
//     port_down,after=2s,time=100ms,device=mlx5_1                    at a time, for a while
//     keys=100    memic=64K                                          as much and no more
//
// Opcodes, statuses and syndromes are numbers, or names as --trace prints them. Without an opcode every one counts.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "softhca/core/arena/device_change.h"
#include "softhca/core/arena/fault_rule.h"

namespace ucxl::softhca
{

// The error names the wrong part and what it may be.
std::expected<fault_rule, std::string> parse_fault(std::string_view text);

// Several rules, separated by semicolons.
std::expected<fault_plan, std::string> parse_faults(std::string_view text);

// A change of a device that runs, for softhca-run --change: port_down:mlx5_1,time=100ms, or port_up:mlx5_0,lid=0x20. It
// concerns mlx5_0 unless it says otherwise.
struct asked_change {
    device_change change;
    std::uint64_t time_ns = 0; // until it is undone, 0 for never
};

std::expected<asked_change, std::string> parse_change(std::string_view text);

} // namespace ucxl::softhca
