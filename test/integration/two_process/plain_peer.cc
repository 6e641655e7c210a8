#include "plain_peer.h"

#include <array>

namespace ucxl::two_process
{

namespace
{

constexpr std::array<std::size_t, 5> lengths = {8, 100, 5000, 70000, 1 << 20};

void send(session& in, const bytes& message)
{
    const ucp_request_param_t param{};
    check_ok(in.wait(ucp_tag_send_nbx(in.endpoint(), message.data(), message.size(), 0, &param)), "ucp_tag_send_nbx");
}

void receive(session& in, bytes& message)
{
    const ucp_request_param_t param{};
    check_ok(in.wait(ucp_tag_recv_nbx(in.worker(), message.data(), message.size(), 0, UINT64_MAX, &param)),
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

void echo(session& in, unsigned round)
{
    const std::size_t length = lengths[round % lengths.size()];
    const bytes message      = test_pattern(length, round);
    bytes received(length);
    if (in.plays(0)) {
        send(in, message);
        receive(in, received);
    } else {
        receive(in, received);
        send(in, received);
    }
    check(received == message, "an echo of {} bytes is not what was sent", length);
}

} // namespace ucxl::two_process
