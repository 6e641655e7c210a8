// An event channel as the kernel's part knows it: the completion channel, the channel of asynchronous events, or a DEVX
// one.
//
// Invariant: open as long as the program has a descriptor of it; nothing is routed to a channel that is not open.
#pragma once

#include <cstdint>

#include "kernel_device.h"

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

    // How many events of an object, of `sent` in all, the program did not read and never will.
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

    bool open() const { return _open; }
    event_format format() const { return _format; }
    const event_channel& channel() const { return _channel; }

    unsigned descriptors = 0;

private:
    kernel_host& _outside;
    event_channel _channel;
    event_format _format;
    bool _open = true;
};

} // namespace ucxl::softhca
