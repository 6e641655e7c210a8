// The text form of a fault rule (fault_rule.h), as --fault and SOFTHCA_FAULT have it:
//
//     command:create_mkey,first=3,times=2,status=limit_exceeded     the third and fourth fail
//     wqe:rdma_write,first=10,syndrome=remote_access                 the tenth completes with that error
//     delay:send,time=50us                                           every one, that much later
//     drop:rdma_read,times=3                                         the first three get lost on the wire
//     refuse:umr_start_addr                                          what a firmware may not do (fault_rule.h)
//     fatal:rdma_write,first=3                                       the device fails for good when it gets there
//     keys=100    memic=64K                                          as much and no more
//
// Opcodes, statuses and syndromes are the names that --trace prints, or numbers; without an opcode every one counts.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "softhca/core/fault_rule.h"

namespace ucxl::softhca
{

// The error says which part is wrong and what it may be.
std::expected<fault_rule, std::string> parse_fault(std::string_view text);

// Several, separated by semicolons.
std::expected<fault_plan, std::string> parse_faults(std::string_view text);

} // namespace ucxl::softhca
