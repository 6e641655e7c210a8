// Work requests that change memory keys: UMR, bind of a memory window (which is a UMR), invalidation.
//
// A UMR names the key in the immediate field of its control segment; the variant byte there is not compared, because
// libmlx5 binds and invalidates with the key's number as it was before. It changes only keys that have umr_en, of the
// queue pair's function and protection domain, made of KLMs or KSMs: of these the entries and the fields of the context
// that mkey_mask names. Not modelled, so refused: block signatures, and moving a key to another protection domain.
#pragma once

#include <cstddef>
#include <span>

#include "arena.h"
#include "prm/cqe.h"

namespace ucxl::softhca
{

// `ok` of a completion that is none of the errors.
inline constexpr prm::cqe_syndrome no_syndrome{};

// The WQE in one piece, with its control segment. `no_syndrome` or the syndrome it completes with; nothing changed in
// that case: local_qp_operation for a WQE that is not whole, local_protection where entries behind a pointer cannot be
// read, memory_window_bind where the key may not be changed so. Bad entries of the lists are found when they are used,
// as on the device.
prm::cqe_syndrome execute_umr(environment& device, const qp_record& qp, std::uint32_t qpn,
                              std::span<const std::byte> wqe);

// LOCAL_INV, and SEND_INV at the responder (`remote`: the key has to allow it). The key goes to the state "free".
prm::cqe_syndrome invalidate_key(environment& device, const qp_record& qp, std::uint32_t qpn, std::uint32_t key,
                                 bool remote);

} // namespace ucxl::softhca
