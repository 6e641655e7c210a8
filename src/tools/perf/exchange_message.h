// Two-sided tests: a ping-pong, and a stream of messages from the client to the server.
#pragma once

#include "channel.h"
#include "exchange.h"
#include "requests_in_flight.h"

namespace ucxl::perf
{

class message_ping_pong : public exchange
{
public:
    message_ping_pong(session& session, method& method, carrier kind)
        : _session(session), _method(method), _channel(make_channel(kind, session, method, 1))
    {
    }

    void prepare_client(std::uint64_t count) override { _channel->begin_receive(count); }
    void prepare_server(std::uint64_t count) override { _channel->begin_receive(count); }

    void run_client(std::uint64_t count, method_statistics& statistics) override
    {
        for (std::uint64_t i = 0; i < count; ++i) {
            send();
            _channel->receive();
            statistics.lap();
        }
    }

    void run_server(std::uint64_t count) override
    {
        for (std::uint64_t i = 0; i < count; ++i) {
            _channel->receive();
            send();
        }
    }

private:
    void send()
    {
        _method.before_send(0);
        _session.finish(_channel->send(_method.outgoing(0)), "send");
    }

    session& _session;
    method& _method;
    std::unique_ptr<channel> _channel;
};

class message_stream : public exchange
{
public:
    message_stream(session& session, method& method, carrier kind, unsigned slots)
        : _session(session), _method(method), _channel(make_channel(kind, session, method, slots)),
          _sends(session, slots)
    {
    }

    void prepare_server(std::uint64_t count) override { _channel->begin_receive(count); }

    void run_client(std::uint64_t count, method_statistics& statistics) override
    {
        for (std::uint64_t i = 0; i < count; ++i) {
            const unsigned slot = _sends.slot_of(i);
            _sends.finish(slot);
            _method.before_send(slot);
            _sends.start(slot, _channel->send(_method.outgoing(slot)));
            statistics.lap();
        }
        _sends.finish_all();
        receive_word(_session);
    }

    void run_server(std::uint64_t count) override
    {
        for (std::uint64_t i = 0; i < count; ++i) {
            _channel->receive();
        }
        send_word(_session, count);
    }

private:
    session& _session;
    method& _method;
    std::unique_ptr<channel> _channel;
    requests_in_flight _sends;
};

} // namespace ucxl::perf
