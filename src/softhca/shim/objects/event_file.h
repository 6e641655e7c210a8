// An event channel as the kernel's part knows it: a completion channel, a channel of asynchronous events, or one of
// DEVX.
//
// Invariant: a channel is open as long as the program has a descriptor of it. No events are routed to a closed channel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "kernel_host.h"
#include "softhca/shim/host/event_record.h"

namespace ucxl::softhca
{

class device_file;

class event_file
{
public:
    event_file(kernel_host& outside, const event_channel& channel, event_format format)
        : _outside(outside), _channel(channel), _format(format)
    {
    }
    ~event_file() { close(); }
    event_file(const event_file&)            = delete;
    event_file& operator=(const event_file&) = delete;

    event_route route(std::uint64_t value, std::uint32_t object) const
    {
        return {
            .channel = _channel.writer, .kind = static_cast<std::uint32_t>(_format), .value = value, .object = object};
    }

    // Drops the unread events with that value. Returns how many there were.
    std::uint32_t drop(std::uint64_t value)
    {
        return _open ? _outside.drop_events(_channel, event_bytes(_format), value) : 0;
    }

    void close()
    {
        if (_open) {
            _open = false;
            _outside.end_event_channel(_channel);
        }
    }

    // Whether its events end with that channel.
    bool belongs_to(const event_file& channel) const { return this == &channel || subscribed_through == &channel; }

    bool open() const { return _open; }
    event_format format() const { return _format; }
    const event_channel& channel() const { return _channel; }

    unsigned descriptors                 = 0;
    const event_file* subscribed_through = nullptr; // of an eventfd: the DEVX channel
    std::uint32_t number                 = 0;       // on the device (fabric::add_channel)

private:
    kernel_host& _outside;
    event_channel _channel;
    event_format _format;
    bool _open = true;
};

// Where the events of an object go, what the program calls the object there, and how many events it read.
struct event_target {
    std::shared_ptr<event_file> channel;
    std::uint64_t value = 0;
    std::uint32_t told  = 0; // events that the program read, of earlier routes
    std::uint32_t kinds = 0; // of a DEVX channel: the subscribed events

    event_route route(std::uint32_t object) const
    {
        if (channel == nullptr || !channel->open()) {
            return {};
        }
        event_route route = channel->route(value, object);
        route.kind |= kinds;
        return route;
    }

    // The route `before` is gone for good: the program does not get the events that it has not read.
    void settle(const std::optional<event_route>& before)
    {
        if (before && channel != nullptr) {
            told += before->sent - std::min(before->sent, channel->drop(value));
        }
        channel.reset();
    }
};

} // namespace ucxl::softhca
