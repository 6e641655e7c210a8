// What --profile adds to commands, in nanoseconds of real time: modelled, not measured here.
//
// bf3 is published for memory keys (BlueField-3: creation, registration by size, export, alias); everything else of it,
// and all of cx6, is an estimate from the same sources' order of magnitude. Work requests are in wqe_cost.h.
#pragma once

#include <cstdint>

#include "fabric.h"
#include "prm/command.h"

namespace ucxl::softhca
{

// Of a command that is not about memory.
std::uint64_t command_cost(profile of, prm::command opcode);

// Registration of that many bytes as ibv_reg_mr() does it, and its end.
std::uint64_t registration_cost(profile of, std::uint64_t bytes);
std::uint64_t deregistration_cost(profile of, std::uint64_t bytes);

// Making memory known to DEVX (UMEM).
std::uint64_t umem_cost(profile of, std::uint64_t bytes);

// Creation of a key whose memory comes with it: from a UMEM, or none (a UMR or KSM key).
std::uint64_t umem_key_cost(profile of);
std::uint64_t indirect_key_cost(profile of);
std::uint64_t key_end_cost(profile of);

} // namespace ucxl::softhca
