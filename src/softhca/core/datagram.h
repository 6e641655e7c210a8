// Datagrams: addressed by each WQE, delivered or dropped without a word to the sender.
#pragma once

#include "responder.h"

namespace ucxl::softhca
{

struct datagram_result {
    answer result;
    std::uint32_t receiver = 0; // the queue pair that `peer_fails` is about
};

datagram_result deliver_datagram(const exchange& of);

} // namespace ucxl::softhca
