// One-sided gets, from the server's send layout into the client's receive layout. A method that copies cannot be
// one-sided: the client asks for a message, the server packs it and says so, the client gets the buffer and unpacks.
#pragma once

#include "exchange.h"
#include "remote_memory.h"
#include "requests_in_flight.h"

namespace ucxl::perf
{

class get_stream : public exchange
{
public:
    get_stream(session& with, method& how, unsigned slots);

    void run_client(std::uint64_t count, method_statistics& statistics) override;
    // The target takes no part; it goes on in the barrier that follows.
    void run_server(std::uint64_t /*count*/) override {}

protected:
    ucs_status_ptr_t start(unsigned slot);
    session& with() { return _with; }
    method& how() { return _how; }
    requests_in_flight& gets() { return _gets; }

private:
    session& _with;
    method& _how;
    remote_memory _remote;
    requests_in_flight _gets;
};

class get_on_demand : public get_stream
{
public:
    using get_stream::get_stream;

    void run_client(std::uint64_t count, method_statistics& statistics) override;
    void run_server(std::uint64_t count) override;
};

} // namespace ucxl::perf
