// Two-sided transfers: one interface for tag matching, stream and active messages, so that each test is written once.
#pragma once

#include "method.h"

#include <memory>

namespace ucxl::perf
{

class channel
{
public:
    channel()                          = default;
    virtual ~channel()                 = default;
    channel(const channel&)            = delete;
    channel& operator=(const channel&) = delete;

    virtual ucs_status_ptr_t send(const wire_buffer& buffer) = 0;
    // `count` messages will come. Posts as many receives as there are slots.
    virtual void begin_receive(std::uint64_t count) = 0;
    // Waits for the next message in order, and the method puts it in its place.
    virtual void receive() = 0;
};

std::unique_ptr<channel> make_channel(carrier kind, session& session, method& method, unsigned slots);

// The common parameters of calls on a buffer.
ucp_request_param_t param_of(const wire_buffer& buffer);

} // namespace ucxl::perf
