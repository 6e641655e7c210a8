// What --profile adds to a work request: modelled times, taken from published measurements of real devices. What nobody
// published costs nothing.
#pragma once

#include <cstdint>

#include "fabric.h"
#include "prm/wqe.h"

namespace ucxl::softhca
{

constexpr std::uint64_t wqe_cost_ns(profile costs, prm::wqe_opcode opcode)
{
    // Binding and invalidating a memory key on BlueField-3, whatever its length.
    constexpr std::uint64_t bind_bf3       = 1'050;
    constexpr std::uint64_t invalidate_bf3 = 1'000;
    // A fetching atomic on a ConnectX-6, one at a time, with its target in host memory.
    constexpr std::uint64_t atomic_cx6 = 1'653;

    switch (opcode) {
    case prm::wqe_opcode::umr:
        return costs == profile::bf3 ? bind_bf3 : 0;
    case prm::wqe_opcode::local_invalidate:
        return costs == profile::bf3 ? invalidate_bf3 : 0;
    case prm::wqe_opcode::atomic_cs:
    case prm::wqe_opcode::atomic_fa:
    case prm::wqe_opcode::atomic_masked_cs:
    case prm::wqe_opcode::atomic_masked_fa:
        return costs == profile::cx6 ? atomic_cx6 : 0;
    default:
        return 0;
    }
}

} // namespace ucxl::softhca
