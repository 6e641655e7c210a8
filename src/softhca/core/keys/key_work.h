// WQEs that change memory keys: UMR, bind of a memory window (a UMR as well), invalidation.
//
// A UMR names the key in the immediate field of its control segment. The variant byte there is not compared, because
// libmlx5 binds and invalidates with the previous number of the key. A UMR changes only KLM and KSM keys with umr_en,
// of the queue pair's function and protection domain: their entries, and the fields of the context that mkey_mask
// selects. Block signatures and changes of the protection domain are not modelled, so they are refused.
#pragma once

#include <cstddef>
#include <span>

#include "prm/cqe.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// The syndrome of success: not an error of any CQE.
inline constexpr prm::cqe_syndrome no_syndrome{};

// What of a UMR is executed: everything, or only the new entries, with which the old context stays for a while.
enum class umr_part : std::uint8_t {
    all,
    entries,
};

// Executes a WQE, given in one piece with its control segment. Returns `no_syndrome`, or the syndrome that it completes
// with; then nothing has changed. local_qp_operation: the WQE is incomplete. local_protection: the entries behind a
// pointer cannot be read. memory_window_bind: the key may not be changed so. Bad entries are found when they are used,
// as on the device.
prm::cqe_syndrome execute_umr(environment& device, const qp_record& qp, std::uint32_t qpn,
                              std::span<const std::byte> wqe, umr_part part = umr_part::all);

// LOCAL_INV, and SEND_INV at the responder (`remote`: the key must allow it). The key changes to the state "free".
prm::cqe_syndrome invalidate_key(environment& device, const qp_record& qp, std::uint32_t qpn, std::uint32_t key,
                                 bool remote);

} // namespace ucxl::softhca
