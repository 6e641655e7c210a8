// A process that talks to itself over the device: context, worker and an endpoint that leads back.
//
// Example: own_peer peer({.error_handling = true}); check_ok(peer.send(from, to, length), "send");
#pragma once

#include "support/ucp.h"

#include <chrono>
#include <vector>

namespace ucxl::test
{

struct own_peer_options {
    bool error_handling = false; // UCP_ERR_HANDLING_MODE_PEER
    bool for_threads    = false; // its context, not its worker
    bool keeps_memory   = true;  // registered after it was unmapped
};

class own_peer
{
public:
    explicit own_peer(const own_peer_options& options = {});
    ~own_peer();
    own_peer(const own_peer&)            = delete;
    own_peer& operator=(const own_peer&) = delete;

    ucp_context_h context() const { return _context.get(); }

    // The first status that is an error. Throws std::runtime_error if it takes too long.
    ucs_status_t send(const void* from, void* to, std::size_t length);
    // The same, UCS_ERR_TIMED_OUT if it takes longer than that. Then nothing else works but to end this object.
    ucs_status_t try_send(const void* from, void* to, std::size_t length, std::chrono::milliseconds patience);

private:
    bool has_ended(ucs_status_ptr_t request, std::chrono::milliseconds patience);
    ucs_status_t finish(ucs_status_ptr_t request);

    test::context _context;
    ucp_worker_h _worker;
    ucp_ep_h _endpoint;
    ucp_tag_t _tag = 0;
    // Memory that ends has its registration ended by the next call that needs one.
    std::vector<std::byte> _first_messages = std::vector<std::byte>(2 << 20);
};

} // namespace ucxl::test
