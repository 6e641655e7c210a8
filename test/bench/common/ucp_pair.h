// Two processes with a UCP endpoint to each other: the first one starts the second, a socket joins them.
//
//     int main(int argc, char** argv)
//     {
//         return run_pair(argc, argv, 0, [](int socket, bool) { ucp_pair with(socket, UCP_FEATURE_TAG); ... });
//     }
#pragma once

#include "support/ucp.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ucxl::bench
{

// Of the other process, for put and get.
struct remote_memory {
    std::uint64_t address = 0;
    test::key_handle key{};
};

// For what is measured: it polls and does nothing else, where the pairs of tests (support/ucp_pair.h and session.h of
// two_process) yield, sleep and look at sockets. Neither it nor what it has opened is ever closed: the process ends.
// All calls throw std::runtime_error.
class ucp_pair
{
public:
    // `yields`: when nothing moves, the processor goes to others. For what is counted and not timed.
    ucp_pair(int socket, std::uint64_t features, bool yields = false);

    ucp_context_h context() const { return _context; }
    ucp_worker_h worker() const { return _worker; }
    ucp_ep_h peer() const { return _peer; }

    // Return when the operation has completed. count: of elements of the datatype; bytes by default.
    void send(const void* from, std::size_t count, ucp_datatype_t type = ucp_dt_make_contig(1));
    void receive(void* to, std::size_t count, ucp_datatype_t type = ucp_dt_make_contig(1));
    void wait_for(ucs_status_ptr_t request);
    void progress();

    // Beside UCP: up to 8 KB of bytes for bytes.
    std::vector<std::byte> trade(std::span<const std::byte> own) const;
    // To be traded: what the other process makes remote memory of.
    std::vector<std::byte> describe(const void* address, ucp_mem_h memh) const;
    remote_memory remote(std::span<const std::byte> described) const;

private:
    int _socket;
    bool _yields;
    ucp_context_h _context = nullptr;
    ucp_worker_h _worker   = nullptr;
    ucp_ep_h _peer         = nullptr;
};

// What main() returns: body() of both processes. The second one is the same program with the socket as one argument
// more than `num_arguments`.
int run_pair(int argc, char** argv, int num_arguments, const std::function<void(int socket, bool is_first)>& body);

} // namespace ucxl::bench
