// The socket beside UCX. Over it the two processes agree on a test, exchange addresses and keys, and report failures to
// each other.
//
// Messages are framed {magic, kind, length}. Input from the peer is hostile: a wrong magic, an unexpected kind or a
// length over the reader's limit ends the run, and memory grows only with bytes that have arrived. A peer that fails
// sends its sentence as a last message; whoever reads next shows it.
//
//     oob_socket peer = oob_socket::connect("node7", 13337);
//     peer.send(oob_kind::address, bytes);
//     std::vector<std::byte> theirs = peer.receive(oob_kind::address, 1 << 20);
#pragma once

#include "tools/common/failure.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/time.h>

namespace ucxl::perf
{

enum class oob_kind : std::uint32_t {
    failed = 1,
    setup,
    address,
    key,
    command,
    status,
    done,
    account,
    contention,
    exported,
    times
};

// What a client comes for. The server has to know before it starts UCX.
enum class errand : std::uint32_t { transfers, atomics, contention, exports };

// The last words of a peer, which prints them itself, too.
class peer_failure : public tools::failure
{
public:
    using tools::failure::failure;
};

class file_descriptor
{
public:
    explicit file_descriptor(int fd = -1) : _fd(fd) {}
    file_descriptor(file_descriptor&& other) noexcept : _fd(std::exchange(other._fd, -1)) {}
    file_descriptor& operator=(file_descriptor&& other) noexcept
    {
        std::swap(_fd, other._fd);
        return *this;
    }
    ~file_descriptor();
    int get() const { return _fd; }

private:
    int _fd;
};

class oob_socket
{
public:
    // Tries for a few seconds, because the server may still be starting.
    static oob_socket connect(const std::string& host, std::uint16_t port);
    // Waits for one client on every local address, then stops listening.
    static oob_socket accept(std::uint16_t port);
    // Waits for several, and calls `welcome` for each. Throws if one of them goes away again in the meantime.
    static std::vector<oob_socket> accept(std::uint16_t port, std::size_t count,
                                          const std::function<void(oob_socket&)>& welcome);
    // Two connected ends: one for this process, one for a child that calls inherit().
    static std::pair<oob_socket, oob_socket> pair();
    static oob_socket inherit(int fd);
    // The descriptor; exec() does not close it any more.
    int inheritable() const;

    // Both sides call it first: it checks the program and the version of the protocol. Returns the errand of the peer.
    errand greet(errand own);

    void send(oob_kind kind, std::span<const std::byte> payload);
    void send_text(oob_kind kind, const std::string& text);
    std::vector<std::byte> receive(oob_kind kind, std::size_t max_length);
    // For plain values.
    template <typename T>
    void send_value(oob_kind kind, const T& value)
    {
        send(kind, std::as_bytes(std::span(&value, 1)));
    }
    template <typename T>
    T receive_value(oob_kind kind)
    {
        T value;
        receive_exactly(kind, std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }

    // A plain value and bytes behind it. There has to be one at least; `what` names them.
    template <typename T>
    void send_with(oob_kind kind, const T& head, std::span<const std::byte> bytes)
    {
        const auto head_bytes = std::as_bytes(std::span(&head, 1));
        std::vector<std::byte> message(head_bytes.begin(), head_bytes.end());
        message.insert(message.end(), bytes.begin(), bytes.end());
        send(kind, message);
    }
    template <typename T>
    std::pair<T, std::vector<std::byte>> receive_with(oob_kind kind, std::size_t max_length, const char* what)
    {
        std::vector<std::byte> message = receive(kind, max_length);
        T head;
        if (message.size() <= sizeof(head)) {
            tools::give_up("{} sent {} of {} bytes", _peer_name, what, message.size());
        }
        std::memcpy(&head, message.data(), sizeof(head));
        message.erase(message.begin(), message.begin() + sizeof(head));
        return {head, std::move(message)};
    }

    // Waits until both sides have called it.
    void barrier();
    // Whether something can be read, including the end of the stream.
    bool readable() const;
    // Whether the peer has closed its end.
    bool has_ended() const;
    // Throws with the peer's last words, if any, when the peer has closed its end. For waits that no message ends.
    void check_peer();
    // Tells the peer why this side ends, and sends nothing more. The peer may already be gone.
    void send_failure(const std::string& reason) noexcept;

    const std::string& peer_name() const { return _peer_name; }
    void set_peer_name(std::string name) { _peer_name = std::move(name); }

private:
    oob_socket(file_descriptor fd, std::string peer_name) : _fd(std::move(fd)), _peer_name(std::move(peer_name)) {}

    std::size_t receive_header(oob_kind kind, std::size_t max_length);
    void receive_exactly(oob_kind kind, std::span<std::byte> into);
    void set_read_limit(timeval limit); // zeros: none
    void read(std::span<std::byte> into);
    void write(std::span<const std::byte> from);
    [[noreturn]] void report_peer_failure(std::size_t length);

    file_descriptor _fd;
    std::string _peer_name;
};

} // namespace ucxl::perf
