// A parsed send WQE. The views point into the WQE's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "prm/send_wqe.h"
#include "softhca/core/keys/reference_list.h"

namespace ucxl::softhca
{

inline constexpr std::size_t longest_send_wqe_bytes = prm::max_wqe_units * prm::wqe_unit_bytes;
inline constexpr std::size_t max_send_segments      = prm::max_wqe_units;

struct send_request {
    bool understood                = false; // it was parsed, and is valid
    prm::wqe_opcode opcode         = prm::wqe_opcode::nop;
    std::uint8_t op_mod            = 0;
    prm::wqe_completion completion = prm::wqe_completion::on_error;
    prm::wqe_fence fence           = prm::wqe_fence::none;
    bool solicited                 = false;
    std::uint32_t imm              = 0;
    std::uint16_t index            = 0; // of its first block, as the CQE names it
    std::uint16_t stream           = 0; // channel of a DCI
    std::uint32_t remote_key       = 0;
    std::uint64_t remote_address   = 0;
    prm::segment_kind atomic_kind  = prm::segment_kind::unknown;
    std::span<const std::byte> atomic;  // operands
    std::span<const std::byte> address; // address vector of a datagram or dynamic connection, compact or full
    std::span<std::byte> wqe;
    reference_list<max_send_segments> data;

    // Its list is written and not read.
    bool brings_data() const { return opcode >= prm::wqe_opcode::rdma_read; }

    // A CQE is written on success.
    bool signaled() const { return completion >= prm::wqe_completion::always; }
};

// Parses a WQE that is in one piece. An empty one, or one that is not valid for that service, is not understood.
void parse_send_wqe(send_request& request, std::span<std::byte> wqe, prm::qp_service service);

} // namespace ucxl::softhca
