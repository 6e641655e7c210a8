#include "plain_peer.h"

#include <array>

namespace ucxl::two_process
{

namespace
{

constexpr std::array<std::size_t, 5> lengths = {8, 100, 5000, 70000, 1 << 20};

void send(session& session, const bytes& message)
{
    const ucp_request_param_t param{};
    check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), message.data(), message.size(), 0, &param)),
             "ucp_tag_send_nbx");
}

void receive(session& session, bytes& message)
{
    const ucp_request_param_t param{};
    check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), message.data(), message.size(), 0, UINT64_MAX, &param)),
             "ucp_tag_recv_nbx");
}

} // namespace

bytes test_pattern(std::size_t length, unsigned salt)
{
    bytes message(length);
    for (std::size_t i = 0; i < length; ++i) {
        message[i] = static_cast<std::byte>(i * 7 + i / 256 + salt);
    }
    return message;
}

void echo(session& session, unsigned round)
{
    const std::size_t length = lengths[round % lengths.size()];
    const bytes message      = test_pattern(length, round);
    bytes received(length);
    if (session.plays(0)) {
        send(session, message);
        receive(session, received);
    } else {
        receive(session, received);
        send(session, received);
    }
    check(received == message, "an echo of {} bytes is not what was sent", length);
}

} // namespace ucxl::two_process
