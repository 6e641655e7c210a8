// One-sided puts. A ping-pong sees a message by its last byte, as ucx_perftest does; a stream of puts needs nothing of
// the target, unless the method copies: then every slot is announced by its last byte and given back when it was copied
// from.
#pragma once

#include "exchange.h"
#include "remote_memory.h"
#include "requests_in_flight.h"

#include <algorithm>

namespace ucxl::perf
{

// Puts of a method's outgoing slots into the peer's incoming ones, the last byte being a signal.
class signalled_put
{
public:
    signalled_put(session& with, method& how);

    // Starts the put of a message whose signal is `signal`.
    ucs_status_ptr_t start(unsigned slot, std::byte signal);
    // Without touching the last byte.
    ucs_status_ptr_t start(unsigned slot);
    // The signal of a slot can be waited for only after it was reset.
    void reset(unsigned slot);
    void wait(unsigned slot, std::byte signal);

private:
    session& _with;
    method& _how;
    remote_memory _remote;
};

class put_ping_pong : public exchange
{
public:
    put_ping_pong(session& with, method& how) : _with(with), _how(how), _put(with, how) {}

    void prepare_client(std::uint64_t /*count*/) override { _put.reset(0); }
    void prepare_server(std::uint64_t /*count*/) override { _put.reset(0); }
    void run_client(std::uint64_t count, method_statistics& statistics) override;
    void run_server(std::uint64_t count) override;
    std::optional<std::byte> signal_of_first() const override;

private:
    void receive(std::byte signal);

    session& _with;
    method& _how;
    signalled_put _put;
};

class put_stream : public exchange
{
public:
    put_stream(session& with, method& how, unsigned slots) : _with(with), _put(with, how), _puts(with, slots) {}

    void run_client(std::uint64_t count, method_statistics& statistics) override;
    // The target takes no part; it goes on in the barrier that follows.
    void run_server(std::uint64_t /*count*/) override {}

private:
    session& _with;
    signalled_put _put;
    requests_in_flight _puts;
};

class put_ring : public exchange
{
public:
    put_ring(session& with, method& how, unsigned slots) : _with(with), _how(how), _put(with, how), _puts(with, slots)
    {
    }

    void prepare_server(std::uint64_t count) override;
    void run_client(std::uint64_t count, method_statistics& statistics) override;
    void run_server(std::uint64_t count) override;
    std::optional<std::byte> signal_of_first() const override;

private:
    // Slots are given back in halves, so that giving back costs little and the ring does not run dry.
    std::uint64_t batch() const { return std::max<std::uint64_t>(1, _puts.slots() / 2); }

    session& _with;
    method& _how;
    signalled_put _put;
    requests_in_flight _puts;
};

} // namespace ucxl::perf
