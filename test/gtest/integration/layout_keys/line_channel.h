// Lines of words between two processes, over a socket that they inherit: the descriptor that UCXL_CHANNEL names.
//
// Example: line_channel peer = line_channel::inherited();
//          peer.send("key 4711"); const std::string answer = peer.receive();
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <sys/socket.h>

namespace ucxl::test
{

class line_channel
{
public:
    explicit line_channel(int socket) : _socket(socket) {}

    static line_channel inherited()
    {
        const char* const wanted = std::getenv("UCXL_CHANNEL");
        if (wanted == nullptr) {
            throw std::runtime_error("UCXL_CHANNEL does not name the socket to the other process");
        }
        return line_channel(std::atoi(wanted));
    }

    void send(const std::string& line) const
    {
        const std::string text = line + "\n";
        if (::send(_socket, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
            throw std::runtime_error(std::string("the other process: ") + std::strerror(errno));
        }
    }

    // Throws when the other process has ended, or says nothing for a minute.
    std::string receive()
    {
        for (;;) {
            if (const auto end = _received.find('\n'); end != std::string::npos) {
                std::string line = _received.substr(0, end);
                _received.erase(0, end + 1);
                return line;
            }
            pollfd readable{.fd = _socket, .events = POLLIN, .revents = 0};
            char bytes[512];
            const ssize_t count = poll(&readable, 1, 60000) == 1 ? recv(_socket, bytes, sizeof(bytes), 0) : -1;
            if (count <= 0) {
                throw std::runtime_error("the other process has ended or says nothing");
            }
            _received.append(bytes, static_cast<std::size_t>(count));
        }
    }

private:
    int _socket;
    std::string _received;
};

} // namespace ucxl::test
