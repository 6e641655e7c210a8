// One-sided puts. A ping-pong detects a message by its last byte, as ucx_perftest does. A stream of puts needs nothing
// from the target unless the method copies: then the last byte announces every slot, and the target gives the slot back
// after copying from it.
#pragma once

#include "exchange.h"
#include "remote_memory.h"
#include "requests_in_flight.h"

#include <algorithm>

namespace ucxl::perf
{

// Puts the outgoing slots of a method into the incoming slots of the peer; the last byte is a signal.
class signalled_put
{
public:
    signalled_put(session& session, method& method);

    // Starts the put of a message with this signal.
    ucs_status_ptr_t start(unsigned slot, std::byte signal);
    // Leaves the last byte as it is.
    ucs_status_ptr_t start(unsigned slot);
    // The signal of a slot can be awaited only after its reset.
    void reset(unsigned slot);
    void wait(unsigned slot, std::byte signal);

private:
    session& _session;
    method& _method;
    remote_memory _remote;
};

class put_ping_pong : public exchange
{
public:
    put_ping_pong(session& session, method& method) : _session(session), _method(method), _put(session, method) {}

    void prepare_client(std::uint64_t /*count*/) override { _put.reset(0); }
    void prepare_server(std::uint64_t /*count*/) override { _put.reset(0); }
    void run_client(std::uint64_t count, method_statistics& statistics) override;
    void run_server(std::uint64_t count) override;
    std::optional<std::byte> signal_of_first() const override;

private:
    void receive(std::byte signal);

    session& _session;
    method& _method;
    signalled_put _put;
};

class put_stream : public exchange
{
public:
    put_stream(session& session, method& method, unsigned slots)
        : _session(session), _put(session, method), _puts(session, slots)
    {
    }

    void run_client(std::uint64_t count, method_statistics& statistics) override;
    // The target takes no part; it waits in the following barrier.
    void run_server(std::uint64_t /*count*/) override {}

private:
    session& _session;
    signalled_put _put;
    requests_in_flight _puts;
};

class put_ring : public exchange
{
public:
    put_ring(session& session, method& method, unsigned slots)
        : _session(session), _method(method), _put(session, method), _puts(session, slots)
    {
    }

    void prepare_server(std::uint64_t count) override;
    void run_client(std::uint64_t count, method_statistics& statistics) override;
    void run_server(std::uint64_t count) override;
    std::optional<std::byte> signal_of_first() const override;

private:
    // Slots are given back in halves, so that this costs little and the ring does not run dry.
    std::uint64_t batch() const { return std::max<std::uint64_t>(1, _puts.slots() / 2); }

    session& _session;
    method& _method;
    signalled_put _put;
    requests_in_flight _puts;
};

} // namespace ucxl::perf
