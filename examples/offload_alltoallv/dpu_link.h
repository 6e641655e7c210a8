// UCP between the DPU processes: one worker, an endpoint to each of them, this one included, and short messages between
// all of them at once.
#pragma once

#include "control.h"
#include "examples/common/ucx_link.h"

#include <string>
#include <vector>

namespace examples
{

class dpu_link
{
public:
    static constexpr std::size_t max_text_bytes = 4096;

    // Exchanges the addresses of the workers through the launcher; all processes call it.
    dpu_link(control& launcher, unsigned rank, unsigned size);
    dpu_link(const dpu_link&)            = delete;
    dpu_link& operator=(const dpu_link&) = delete;

    ucp_context_h context() const { return _context.get(); }
    ucp_ep_h endpoint(unsigned rank) const { return _endpoints[rank]; }

    // Sends text i to process i, and returns the texts from all processes. All of them call it.
    std::vector<std::string> trade(const std::vector<std::string>& texts);
    // Ends a request, or all of them.
    void wait(ucs_status_ptr_t request);
    void wait_all(std::vector<ucs_status_ptr_t>& requests);
    // A put of this process into its own memory, which only the device can do.
    void try_device();
    // The last call of each process.
    void close();

private:
    owned_context _context;
    owned_worker _worker;
    std::vector<ucp_ep_h> _endpoints;
    unsigned _rank;
    std::uint64_t _num_trades = 0;
    // They stay, so that UCX has them in its cache of registrations.
    std::vector<std::string> _outgoing;
    std::vector<std::string> _incoming;
    std::vector<std::uint64_t> _tried;
};

} // namespace examples
