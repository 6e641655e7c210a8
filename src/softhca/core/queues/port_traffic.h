// Counts what the ports of two queue pairs send and receive for a message. Messages are not cut into packets here, but
// they are counted as if they were, with headers: every request on a reliable connection is answered by one packet, a
// read by as many as its data needs.
#pragma once

#include "answer.h"
#include "send_request.h"
#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// A request on a connection, with what came of it. `peer`: null when it reached nobody. `expected`: it was the packet
// that the peer expected next.
void count_exchange(arena& memory, const qp_record& sender, const qp_record* peer, bool expected,
                    const send_request& request, const answer& result);

// A datagram. `peer`: null when it reached nobody.
void count_datagram(arena& memory, const qp_record& sender, const qp_record* peer, const send_request& request);

// A request, or a receive, that completes with an error or is flushed.
void count_failed_send(arena& memory, const qp_record& sender, prm::cqe_syndrome syndrome);
void count_failed_receive(arena& memory, const qp_record& receiver, prm::cqe_syndrome syndrome);

inline port_counters& counters_of(arena& memory, const qp_record& qp)
{
    return memory.ports[qp.owner.function];
}

} // namespace ucxl::softhca
