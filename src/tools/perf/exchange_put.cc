#include "exchange_put.h"

#include "channel.h"

#include <algorithm>
#include <atomic>

namespace ucxl::perf
{

namespace
{

// Differs from the slot's previous signal, and from 0, to which slots are reset.
std::byte signal_of(std::uint64_t use_of_slot)
{
    return static_cast<std::byte>(1 + use_of_slot % 255);
}

} // namespace

signalled_put::signalled_put(session& session, method& method)
    : _session(session), _method(method), _remote(remote_memory::trade(session, method.exposed_incoming()))
{
}

ucs_status_ptr_t signalled_put::start(unsigned slot, std::byte signal)
{
    *_method.source().last_byte() = signal;
    return start(slot);
}

ucs_status_ptr_t signalled_put::start(unsigned slot)
{
    _method.before_send(slot);
    const wire_buffer buffer        = _method.outgoing(slot);
    const ucp_request_param_t param = param_of(buffer);
    return ucp_put_nbx(_session.endpoint(), buffer.address, buffer.count, _remote.address(slot), _remote.key(), &param);
}

void signalled_put::reset(unsigned slot)
{
    *_method.signal_byte(slot) = std::byte{0};
}

void signalled_put::wait(unsigned slot, std::byte signal)
{
    const std::atomic_ref<std::byte> last(*_method.signal_byte(slot));
    while (last.load(std::memory_order_acquire) != signal) {
        _session.progress();
    }
}

void put_ping_pong::run_client(std::uint64_t count, method_statistics& statistics)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const ucs_status_ptr_t request = _put.start(0, signal_of(i));
        receive(signal_of(i));
        _session.finish(request, "ucp_put_nbx");
        statistics.lap();
    }
}

void put_ping_pong::run_server(std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        receive(signal_of(i));
        _session.finish(_put.start(0, signal_of(i)), "ucp_put_nbx");
    }
}

void put_ping_pong::receive(std::byte signal)
{
    _put.wait(0, signal);
    _method.after_receive(0);
}

std::optional<std::byte> put_ping_pong::signal_of_first() const
{
    return signal_of(0);
}

void put_stream::run_client(std::uint64_t count, method_statistics& statistics)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const unsigned slot = _puts.slot_of(i);
        _puts.finish(slot);
        _puts.start(slot, _put.start(slot));
        statistics.lap();
    }
    _puts.finish_all();
    _session.flush();
}

void put_ring::prepare_server(std::uint64_t /*count*/)
{
    for (unsigned slot = 0; slot < _puts.slots(); ++slot) {
        _put.reset(slot);
    }
}

void put_ring::run_client(std::uint64_t count, method_statistics& statistics)
{
    std::uint64_t free_until = _puts.slots();
    std::uint64_t given_back = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i == free_until) {
            given_back = receive_word(_session);
            free_until = given_back + _puts.slots();
        }
        const unsigned slot = _puts.slot_of(i);
        _puts.finish(slot);
        _puts.start(slot, _put.start(slot, signal_of(i / _puts.slots())));
        statistics.lap();
    }
    _puts.finish_all();
    while (given_back != count) {
        given_back = receive_word(_session);
    }
}

void put_ring::run_server(std::uint64_t count)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const unsigned slot = _puts.slot_of(i);
        _put.wait(slot, signal_of(i / _puts.slots()));
        _method.after_receive(slot);
        if ((i + 1) % batch() == 0 || i + 1 == count) {
            send_word(_session, i + 1);
        }
    }
}

std::optional<std::byte> put_ring::signal_of_first() const
{
    return signal_of(0);
}

} // namespace ucxl::perf
