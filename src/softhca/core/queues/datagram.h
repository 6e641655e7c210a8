// Datagrams: each WQE has the address. They are delivered or silently dropped.
#pragma once

#include "responder.h"

namespace ucxl::softhca
{

struct datagram_result {
    answer result;
    std::uint32_t receiver = 0; // the queue pair of `peer_fails`
};

datagram_result deliver_datagram(const exchange& sender);

} // namespace ucxl::softhca
