// Two-sided transfers: tag matching, stream and active messages behind one seam, so that a test is written once.
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
    // `count` messages will come; as many receives as there are slots are posted at once.
    virtual void begin_receive(std::uint64_t count) = 0;
    // Waits for the next message in order and lets the method put it where it belongs.
    virtual void receive() = 0;
};

std::unique_ptr<channel> make_channel(carrier by, session& with, method& how, unsigned slots);

// The parameters every call on a buffer starts with.
ucp_request_param_t param_of(const wire_buffer& buffer);

} // namespace ucxl::perf
