// A ring of operations in flight, one per slot. A slot is reused when its last operation is complete.
#pragma once

#include "session.h"

#include <utility>
#include <vector>

namespace ucxl::perf
{

class requests_in_flight
{
public:
    // call: named if a request fails.
    requests_in_flight(session& session, unsigned slots, const char* call = "a transfer")
        : _session(session), _requests(slots), _call(call)
    {
    }

    unsigned slot_of(std::uint64_t message) const { return static_cast<unsigned>(message % _requests.size()); }
    unsigned slots() const { return static_cast<unsigned>(_requests.size()); }
    void finish(unsigned slot) { _session.finish(std::exchange(_requests[slot], nullptr), _call); }
    void start(unsigned slot, ucs_status_ptr_t request) { _requests[slot] = request; }
    void finish_all()
    {
        for (unsigned slot = 0; slot < slots(); ++slot) {
            finish(slot);
        }
    }

private:
    session& _session;
    std::vector<ucs_status_ptr_t> _requests;
    const char* _call;
};

} // namespace ucxl::perf
