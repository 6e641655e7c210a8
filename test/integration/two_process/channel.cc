#include "channel.h"

#include "check.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/socket.h>

namespace ucxl::two_process
{

namespace
{

void send_all(int fd, std::span<const std::byte> data)
{
    while (!data.empty()) {
        const auto sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
        check(sent > 0 || errno == EINTR, "channel: the other peer is gone ({})", std::strerror(errno));
        data = data.subspan(sent > 0 ? static_cast<std::size_t>(sent) : 0);
    }
}

} // namespace

void channel::send(std::span<const std::byte> message)
{
    if (_fd == loopback) {
        _messages.emplace_back(message.begin(), message.end());
        return;
    }
    const std::uint64_t length = message.size();
    send_all(_fd, std::as_bytes(std::span(&length, 1)));
    send_all(_fd, message);
}

// False when the other peer is gone; what it had sent is there all the same.
bool channel::read_available()
{
    std::array<std::byte, 16384> buffer;
    for (;;) {
        const auto got = ::recv(_fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got > 0) {
            _partial.insert(_partial.end(), buffer.begin(), buffer.begin() + got);
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        return false;
    }
}

std::optional<bytes> channel::try_receive()
{
    if (_messages.empty() && _fd != loopback) {
        const bool connected = read_available();
        std::uint64_t length = 0;
        while (_partial.size() >= sizeof(length)) {
            std::memcpy(&length, _partial.data(), sizeof(length));
            if (_partial.size() - sizeof(length) < length) {
                break;
            }
            const auto begin = _partial.begin() + sizeof(length);
            const auto end   = begin + static_cast<std::ptrdiff_t>(length);
            _messages.emplace_back(begin, end);
            _partial.erase(_partial.begin(), end);
        }
        check(connected || !_messages.empty(), "channel: the other peer is gone");
    }
    if (_messages.empty()) {
        return std::nullopt;
    }
    auto message = std::move(_messages.front());
    _messages.pop_front();
    return message;
}

} // namespace ucxl::two_process
