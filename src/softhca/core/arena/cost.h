// The time that --times adds to commands and work requests, in nanoseconds. It is modelled, not measured here.
//
// bf3 has published numbers for memory keys (BlueField-3: creation, registration by size, export, alias). The rest of
// bf3 and all of cx6 are estimates of the same order of magnitude. A work request without a published number costs
// nothing.
#pragma once

#include <cstdint>

#include "prm/command.h"
#include "prm/wqe.h"

namespace ucxl::softhca
{

enum class card_times : std::uint32_t {
    none, // nothing is added
    cx6,
    bf3,
};

// The cost of a command that is not about memory.
std::uint64_t command_cost(card_times costs, prm::command opcode);

// The cost of registering that many bytes with ibv_reg_mr(), and of deregistering them.
std::uint64_t registration_cost(card_times costs, std::uint64_t bytes);
std::uint64_t deregistration_cost(card_times costs, std::uint64_t bytes);

// The cost of registering memory for DEVX (UMEM).
std::uint64_t umem_cost(card_times costs, std::uint64_t bytes);

// The cost of creating a key from a UMEM, of creating an indirect key (KLM or KSM), and of destroying a key.
std::uint64_t umem_key_cost(card_times costs);
std::uint64_t indirect_key_cost(card_times costs);
std::uint64_t key_end_cost(card_times costs);

constexpr std::uint64_t wqe_cost_ns(card_times costs, prm::wqe_opcode opcode)
{
    // Binding and invalidating a memory key on BlueField-3, for any length.
    constexpr std::uint64_t bind_bf3       = 1'050;
    constexpr std::uint64_t invalidate_bf3 = 1'000;
    // A fetching atomic on a ConnectX-6, one at a time, with its target in host memory.
    constexpr std::uint64_t atomic_cx6 = 1'653;

    switch (opcode) {
    case prm::wqe_opcode::umr:
        return costs == card_times::bf3 ? bind_bf3 : 0;
    case prm::wqe_opcode::local_invalidate:
        return costs == card_times::bf3 ? invalidate_bf3 : 0;
    case prm::wqe_opcode::atomic_cs:
    case prm::wqe_opcode::atomic_fa:
    case prm::wqe_opcode::atomic_masked_cs:
    case prm::wqe_opcode::atomic_masked_fa:
        return costs == card_times::cx6 ? atomic_cx6 : 0;
    default:
        return 0;
    }
}

} // namespace ucxl::softhca
