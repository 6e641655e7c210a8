// The memory that the peer exposes for puts and gets: its address and remote key, exchanged over the socket.
#pragma once

#include "method.h"
#include "session.h"

namespace ucxl::perf
{

class remote_memory
{
public:
    // Both sides call it: each sends what it exposes and receives what the peer exposes.
    static remote_memory trade(session& session, const exposed_memory& own);
    // The two halves of it, for memory that only one side exposes.
    static void send(oob_socket& peer, ucp_context_h context, const exposed_memory& own);
    static remote_memory receive(oob_socket& peer, ucp_ep_h endpoint);

    std::uint64_t address(unsigned slot) const { return _address + slot * _slot_distance; }
    ucp_rkey_h key() const { return _key.get(); }

private:
    std::uint64_t _address       = 0;
    std::uint64_t _slot_distance = 0;
    tools::key_handle _key;
};

} // namespace ucxl::perf
