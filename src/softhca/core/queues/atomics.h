// Atomic operations, plain and masked, of 4 and 8 bytes: their arithmetic, and the result that the requester gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "prm/send_wqe.h"

namespace ucxl::softhca
{

struct atomic_operation {
    unsigned bytes              = 8; // of the operand
    bool swaps                  = false;
    std::uint64_t operand       = 0; // the number to add, or to swap in
    std::uint64_t operand_mask  = 0; // swap: bits that change; add: bits that pass no carry on
    std::uint64_t compared      = 0;
    std::uint64_t compared_mask = 0;
};

// The operation of a WQE. Nothing for an operand size that the device does not support.
std::optional<atomic_operation> atomic_of(prm::segment_kind kind, std::span<const std::byte> operands,
                                          prm::wqe_opcode opcode, std::uint8_t op_mod);

// The new value, or the old one when the comparison fails.
std::uint64_t apply(const atomic_operation& operation, std::uint64_t old);

// The old value, in the byte order in which it is written to the requester's memory. The device reports
// (atomic_req_8b_endianness_mode) that 8-byte results have the byte order of the host; all others are big-endian.
std::uint64_t result_bytes(const atomic_operation& operation, std::uint64_t old);

} // namespace ucxl::softhca
