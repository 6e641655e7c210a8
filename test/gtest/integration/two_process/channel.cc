#include "channel.h"

#include "support/check.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

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

// Above all descriptors that a peer gets, so that none of those overwrites it.
int out_of_the_way(int fd)
{
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    check(moved >= 0, "fcntl(F_DUPFD_CLOEXEC): {}", std::strerror(errno));
    close(fd);
    return moved;
}

} // namespace

channel_pairs::channel_pairs()
{
    for (std::size_t i = 0; i < num_channels; ++i) {
        int pair[2];
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair: {}", std::strerror(errno));
        for (std::size_t role = 0; role < 2; ++role) {
            _ends[role][i] = out_of_the_way(pair[role]);
        }
    }
}

channel_pairs::~channel_pairs()
{
    for (const auto& ends : _ends) {
        for (const int end : ends) {
            close(end);
        }
    }
}

std::vector<int> channel_pairs::ends(int role) const
{
    const auto& own = _ends[static_cast<std::size_t>(role)];
    return {own.begin(), own.end()};
}

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

// Returns false when the other peer is gone; what it sent before can still be read.
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
