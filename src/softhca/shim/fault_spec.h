// The text form of a fault rule (fault_rule.h), for --fault and SOFTHCA_FAULT:
//
//     command:create_mkey,first=3,times=2,status=limit_exceeded     the third and fourth fail
//     wqe:rdma_write,first=10,syndrome=remote_access                 the tenth completes with that error
//     delay:send,time=50us                                           every one, that much later
//     drop:rdma_read,times=3                                         the first three get lost on the wire
//     refuse:umr_start_addr                                          what a firmware may not do (fault_rule.h)
//     fatal:rdma_write,first=3                                       the device fails for good when it gets there
//     keys=100    memic=64K                                          as much and no more
//
// Opcodes, statuses and syndromes are numbers, or names as --trace prints them. Without an opcode every one counts.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "softhca/core/arena/fault_rule.h"

namespace ucxl::softhca
{

// The error names the wrong part and what it may be.
std::expected<fault_rule, std::string> parse_fault(std::string_view text);

// Several rules, separated by semicolons.
std::expected<fault_plan, std::string> parse_faults(std::string_view text);

} // namespace ucxl::softhca
