// One attempt to execute a send WQE: from its beginning, or again after a wait. The order in which the WQEs of a queue
// are attempted is the caller's (requester.cc, adversarial_order.cc).
#pragma once

#include <cstdint>

#include "responder.h"

namespace ucxl::softhca
{

struct attempted {
    answer result;
    std::uint32_t peer_qpn = 0;
};

// Begins the WQE, or goes on when the time of its wait is over. The result is done or refused; or else the WQE waits,
// as send_queue_state says. On success the CQE has what only the responder knows. `pieces`: how the adversarial order
// moves its data.
attempted attempt_wqe(environment& device, qp_record& qp, std::uint32_t qpn, const send_request& request,
                      const piece_order* pieces, completion& cqe);

} // namespace ucxl::softhca
