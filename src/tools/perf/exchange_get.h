// One-sided gets from the server's send layout into the client's receive layout. A method that copies cannot be
// one-sided: the client asks for a message, the server packs it and answers, the client gets the buffer and unpacks it.
#pragma once

#include "exchange.h"
#include "remote_memory.h"
#include "requests_in_flight.h"

namespace ucxl::perf
{

class get_stream : public exchange
{
public:
    get_stream(session& session, method& method, unsigned slots);

    void run_client(std::uint64_t count, method_statistics& statistics) override;
    // The target takes no part; it waits in the following barrier.
    void run_server(std::uint64_t /*count*/) override {}

protected:
    ucs_status_ptr_t start(unsigned slot);
    session& own_session() { return _session; }
    method& own_method() { return _method; }
    requests_in_flight& gets() { return _gets; }

private:
    session& _session;
    method& _method;
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
