#include "control.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace examples
{

namespace
{

// Something else than these programs may write to the same descriptor.
constexpr std::uint32_t frame_magic  = 0x414c4c32;
constexpr std::uint64_t longest      = std::uint64_t{1} << 28;
constexpr std::size_t bytes_per_read = std::size_t{1} << 16;

struct frame {
    std::uint32_t magic;
    word kind;
    std::uint64_t length;
};

int own_descriptor(int standard)
{
    const int made = fcntl(standard, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (made < 0) {
        throw std::runtime_error(fmt::format("this process has no descriptor {}; the launcher starts it", standard));
    }
    return made;
}

void write_all(int output, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t written = write(output, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            throw control::end_of_messages{};
        }
        bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
}

} // namespace

control control::of_this_process()
{
    const int input  = own_descriptor(STDIN_FILENO);
    const int output = own_descriptor(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return {input, output};
}

control::control(control&& other) noexcept
    : _input(std::exchange(other._input, -1)), _output(std::exchange(other._output, -1)),
      _received(std::move(other._received))
{
}

control::~control()
{
    if (_input >= 0) {
        close(_input);
        close(_output);
    }
}

void control::send(word kind, std::string_view payload) const
{
    const frame head{.magic = frame_magic, .kind = kind, .length = payload.size()};
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
    bytes += payload;
    write_all(_output, bytes);
}

void control::read_some()
{
    std::array<char, bytes_per_read> bytes;
    const ssize_t got = read(_input, bytes.data(), bytes.size());
    if (got == 0 || (got < 0 && errno != EINTR)) {
        throw end_of_messages{};
    }
    _received.append(bytes.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
}

std::optional<control::message> control::take()
{
    frame head{};
    if (_received.size() < sizeof(head)) {
        return std::nullopt;
    }
    std::memcpy(&head, _received.data(), sizeof(head));
    if (head.magic != frame_magic || head.length > longest) {
        throw std::runtime_error(
            fmt::format("no message of this program has come, but \"{}\"", _received.substr(0, _received.find('\n'))));
    }
    if (_received.size() < sizeof(head) + head.length) {
        return std::nullopt;
    }
    message complete{.kind = head.kind, .payload = _received.substr(sizeof(head), head.length)};
    _received.erase(0, sizeof(head) + head.length);
    return complete;
}

control::message control::receive()
{
    for (;;) {
        if (auto complete = take()) {
            return *std::move(complete);
        }
        read_some();
    }
}

std::string control::receive(word kind)
{
    message next = receive();
    if (next.kind != kind) {
        throw std::runtime_error(fmt::format("message {} has come instead of {}", static_cast<unsigned>(next.kind),
                                             static_cast<unsigned>(kind)));
    }
    return std::move(next.payload);
}

void append_number(std::string& payload, std::uint64_t number)
{
    payload.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void append_text(std::string& payload, std::string_view text)
{
    append_number(payload, text.size());
    payload += text;
}

std::uint64_t take_number(std::string_view& rest)
{
    std::uint64_t number = 0;
    if (rest.size() < sizeof(number)) {
        throw std::runtime_error("a message is too short");
    }
    std::memcpy(&number, rest.data(), sizeof(number));
    rest.remove_prefix(sizeof(number));
    return number;
}

std::string_view take_text(std::string_view& rest)
{
    const std::uint64_t length = take_number(rest);
    if (rest.size() < length) {
        throw std::runtime_error("a message is too short");
    }
    const std::string_view text = rest.substr(0, length);
    rest.remove_prefix(length);
    return text;
}

} // namespace examples
