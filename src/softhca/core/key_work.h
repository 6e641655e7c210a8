// Work requests that change memory keys: UMR, bind of a memory window (which is a UMR), invalidation.
#pragma once

#include <cstddef>
#include <span>

#include "arena.h"
#include "prm/cqe.h"

namespace ucxl::softhca
{

// The WQE in one piece, with its control segment. `ok` or the syndrome it completes with; nothing changed in that case.
// Bad entries of the lists are found when they are used, as on the device.
prm::cqe_syndrome execute_umr(environment& device, const qp_record& qp, std::uint32_t qpn,
                              std::span<const std::byte> wqe);

// LOCAL_INV, and SEND_INV at the responder. The key goes to the state "free".
prm::cqe_syndrome invalidate_key(environment& device, const qp_record& qp, std::uint32_t qpn, std::uint32_t key,
                                 bool remote);

} // namespace ucxl::softhca
