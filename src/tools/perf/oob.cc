#include "oob.h"

#include "tools/common/failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ucxl::perf
{

using tools::give_up;

namespace
{

constexpr std::uint32_t frame_magic = 0x4c584355;
constexpr std::array<char, 8> hello_magic{'U', 'C', 'X', 'L', 'P', 'E', 'R', 'F'};
// Increases with every change of the messages between the two sides.
constexpr std::uint32_t protocol_version = 3;
constexpr std::size_t max_failure_length = 4096;
// The time limit of one read of the greeting. Later a test may take long: the peer shows its progress on the UCX side,
// not here.
constexpr timeval greeting_limit{.tv_sec = 10, .tv_usec = 0};
constexpr std::chrono::milliseconds connect_patience{3000};
constexpr std::chrono::milliseconds connect_pause{50};

struct frame {
    std::uint32_t magic;
    oob_kind kind;
    std::uint64_t length;
};

struct greeting {
    std::array<char, 8> magic;
    std::uint32_t version;
    errand purpose;
};

struct addrinfo_deleter {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using addrinfo_list = std::unique_ptr<addrinfo, addrinfo_deleter>;

addrinfo_list resolve(const char* host, std::uint16_t port, int flags)
{
    addrinfo hints{};
    hints.ai_flags      = flags;
    hints.ai_socktype   = SOCK_STREAM;
    addrinfo* list      = nullptr;
    const int status    = getaddrinfo(host, std::to_string(port).c_str(), &hints, &list);
    const char* subject = host != nullptr ? host : "the local addresses";
    if (status != 0) {
        give_up("{}: {}", subject, gai_strerror(status));
    }
    return addrinfo_list(list);
}

std::string address_text(const sockaddr* address, socklen_t length)
{
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> service{};
    if (getnameinfo(address, length, host.data(), host.size(), service.data(), service.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "unknown";
    }
    return fmt::format("{}:{}", host.data(), service.data());
}

void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof(value));
}

// Listens on all addresses with one socket: IPv6 and IPv4 where the host has IPv6, otherwise IPv4.
file_descriptor listen_on(std::uint16_t port, int backlog)
{
    int last_error = 0;
    for (const int family : {AF_INET6, AF_INET}) {
        file_descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (fd.get() < 0) {
            last_error = errno;
            continue;
        }
        set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
        sockaddr_storage storage{};
        socklen_t length = 0;
        if (family == AF_INET6) {
            set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
            const sockaddr_in6 address{.sin6_family   = AF_INET6,
                                       .sin6_port     = htons(port),
                                       .sin6_flowinfo = 0,
                                       .sin6_addr     = in6addr_any,
                                       .sin6_scope_id = 0};
            std::memcpy(&storage, &address, length = sizeof(address));
        } else {
            const sockaddr_in address{
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_ANY)}, .sin_zero = {}};
            std::memcpy(&storage, &address, length = sizeof(address));
        }
        if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0 &&
            listen(fd.get(), backlog) == 0) {
            return fd;
        }
        last_error = errno;
        if (last_error == EADDRINUSE) {
            break;
        }
    }
    give_up("cannot listen on port {}: {} (-p chooses another one)", port, std::strerror(last_error));
}

// A client that tries a port of the range that the system takes its own ports from, while nobody listens there, may be
// given that port, and is then connected with itself (RFC 9293, simultaneous open).
bool is_own_end(int fd)
{
    sockaddr_storage own{};
    sockaddr_storage peer{};
    socklen_t own_length  = sizeof(own);
    socklen_t peer_length = sizeof(peer);
    return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
           getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 && own_length == peer_length &&
           std::memcmp(&own, &peer, own_length) == 0;
}

} // namespace

file_descriptor::~file_descriptor()
{
    if (_fd >= 0) {
        close(_fd);
    }
}

oob_socket oob_socket::connect(const std::string& host, std::uint16_t port)
{
    const addrinfo_list list = resolve(host.c_str(), port, 0);
    const auto deadline      = std::chrono::steady_clock::now() + connect_patience;
    for (;;) {
        int last_error = 0;
        for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
            file_descriptor fd(socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
            const bool connected = fd.get() >= 0 && ::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0;
            last_error           = errno;
            if (connected && is_own_end(fd.get())) {
                last_error = ECONNREFUSED;
            } else if (connected) {
                set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
                return oob_socket(std::move(fd), address_text(entry->ai_addr, entry->ai_addrlen));
            }
        }
        if (last_error != ECONNREFUSED || std::chrono::steady_clock::now() > deadline) {
            give_up("cannot connect to {} port {}: {}", host, port, std::strerror(last_error));
        }
        std::this_thread::sleep_for(connect_pause);
    }
}

oob_socket oob_socket::accept(std::uint16_t port)
{
    return std::move(accept(port, 1, [](oob_socket&) {}).front());
}

std::vector<oob_socket> oob_socket::accept(std::uint16_t port, std::size_t count,
                                           const std::function<void(oob_socket&)>& welcome)
{
    const file_descriptor listener = listen_on(port, static_cast<int>(count));
    std::vector<oob_socket> clients;
    while (clients.size() < count) {
        std::vector<pollfd> waiting{{.fd = listener.get(), .events = POLLIN, .revents = 0}};
        for (const oob_socket& client : clients) {
            waiting.push_back({.fd = client._fd.get(), .events = POLLRDHUP, .revents = 0});
        }
        poll(waiting.data(), waiting.size(), -1);
        for (oob_socket& client : clients) {
            client.check_peer();
        }
        sockaddr_storage address{};
        socklen_t length = sizeof(address);
        const int fd     = accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
                give_up("accept: {}", std::strerror(errno));
            }
            continue;
        }
        file_descriptor connected(fd);
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        clients.push_back(
            oob_socket(std::move(connected), address_text(reinterpret_cast<const sockaddr*>(&address), length)));
        welcome(clients.back());
    }
    return clients;
}

std::pair<oob_socket, oob_socket> oob_socket::pair()
{
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        give_up("socketpair: {}", std::strerror(errno));
    }
    return {oob_socket(file_descriptor(ends[0]), "own child"), oob_socket(file_descriptor(ends[1]), "own parent")};
}

oob_socket oob_socket::inherit(int fd)
{
    return {file_descriptor(fd), "own parent"};
}

int oob_socket::inheritable() const
{
    fcntl(_fd.get(), F_SETFD, 0);
    return _fd.get();
}

errand oob_socket::greet(errand own)
{
    const greeting mine{.magic = hello_magic, .version = protocol_version, .purpose = own};
    write(std::as_bytes(std::span(&mine, 1)));
    greeting theirs{};
    set_read_limit(greeting_limit);
    read(std::as_writable_bytes(std::span(&theirs, 1)));
    set_read_limit({});
    if (theirs.magic != hello_magic) {
        give_up("{} is not ucx_layout_perftest", _peer_name);
    }
    if (theirs.version != protocol_version) {
        give_up("{} speaks version {} of the set-up protocol, this is version {}: use the same release on both sides",
                _peer_name, theirs.version, protocol_version);
    }
    return theirs.purpose;
}

void oob_socket::send(oob_kind kind, std::span<const std::byte> payload)
{
    const frame header{.magic = frame_magic, .kind = kind, .length = payload.size()};
    write(std::as_bytes(std::span(&header, 1)));
    write(payload);
}

void oob_socket::send_text(oob_kind kind, const std::string& text)
{
    send(kind, std::as_bytes(std::span(text)));
}

std::size_t oob_socket::receive_header(oob_kind kind, std::size_t max_length)
{
    frame header{};
    read(std::as_writable_bytes(std::span(&header, 1)));
    if (header.magic != frame_magic) {
        give_up("{} sent something that is not a message of this program", _peer_name);
    }
    if (header.kind == oob_kind::failed) {
        report_peer_failure(header.length);
    }
    if (header.kind != kind) {
        give_up("{} sent a message of kind {} where kind {} was expected", _peer_name,
                static_cast<std::uint32_t>(header.kind), static_cast<std::uint32_t>(kind));
    }
    if (header.length > max_length) {
        give_up("{} announced a message of {} bytes, the limit is {}", _peer_name, header.length, max_length);
    }
    return header.length;
}

std::vector<std::byte> oob_socket::receive(oob_kind kind, std::size_t max_length)
{
    constexpr std::size_t step = 1 << 20;
    const std::size_t length   = receive_header(kind, max_length);
    std::vector<std::byte> payload;
    while (payload.size() < length) {
        const std::size_t have = payload.size();
        payload.resize(have + std::min(step, length - have));
        read(std::span(payload).subspan(have));
    }
    return payload;
}

void oob_socket::receive_exactly(oob_kind kind, std::span<std::byte> into)
{
    const std::size_t length = receive_header(kind, into.size());
    if (length != into.size()) {
        give_up("{} sent {} bytes where {} were expected", _peer_name, length, into.size());
    }
    read(into);
}

void oob_socket::barrier()
{
    send(oob_kind::done, {});
    receive(oob_kind::done, 0);
}

bool oob_socket::readable() const
{
    pollfd poller{.fd = _fd.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
    return poll(&poller, 1, 0) > 0;
}

bool oob_socket::has_ended() const
{
    pollfd poller{.fd = _fd.get(), .events = POLLRDHUP, .revents = 0};
    return poll(&poller, 1, 0) > 0;
}

void oob_socket::check_peer()
{
    if (!has_ended()) {
        return;
    }
    // The peer's last words, or an earlier message that nobody needs any more.
    frame next{};
    if (recv(_fd.get(), &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT) == sizeof(next) &&
        next.kind != oob_kind::failed) {
        give_up("{} has closed the connection", _peer_name);
    }
    receive(oob_kind::failed, 0);
}

void oob_socket::send_failure(const std::string& reason) noexcept
{
    try {
        send_text(oob_kind::failed, reason.substr(0, max_failure_length));
        // Wakes a peer that looks for the end of the stream only.
        shutdown(_fd.get(), SHUT_WR);
    } catch (const std::exception&) {
        // The peer has gone first; this side prints the failure anyway.
        return;
    }
}

void oob_socket::report_peer_failure(std::size_t length)
{
    std::string text(std::min(length, max_failure_length), '\0');
    read(std::as_writable_bytes(std::span(text)));
    std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    throw peer_failure(fmt::format("{}: {}", _peer_name, text));
}

void oob_socket::set_read_limit(timeval limit)
{
    if (setsockopt(_fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0) {
        give_up("setsockopt: {}", std::strerror(errno));
    }
}

void oob_socket::read(std::span<std::byte> into)
{
    while (!into.empty()) {
        const ssize_t got = recv(_fd.get(), into.data(), into.size(), 0);
        if (got == 0) {
            give_up("{} has closed the connection", _peer_name);
        }
        if (got < 0 && errno == EAGAIN) {
            give_up("{} connected but did not say for {} s what it is", _peer_name, greeting_limit.tv_sec);
        }
        if (got < 0 && errno != EINTR) {
            give_up("{}: {}", _peer_name, std::strerror(errno));
        }
        into = into.subspan(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
}

void oob_socket::write(std::span<const std::byte> from)
{
    while (!from.empty()) {
        const ssize_t sent = ::send(_fd.get(), from.data(), from.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            const int reason = errno;
            check_peer();
            give_up("{}: {}", _peer_name, std::strerror(reason));
        }
        from = from.subspan(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
}

} // namespace ucxl::perf
