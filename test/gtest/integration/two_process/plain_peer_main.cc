// A peer with stock UCX only: it does not link libucp_layout.
#include "plain_peer.h"
#include "scenario.h"

namespace ucxl::two_process
{

namespace
{

void receive_from_window(session& session, std::size_t length)
{
    bytes received(length);
    const ucp_request_param_t param{};
    check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), received.data(), length, length, UINT64_MAX, &param)),
             "ucp_tag_recv_nbx");
    check(received == test_pattern(length, 0), "a message of {} bytes from a window is not what was sent", length);
}

const scenario plain("plain_peer", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        echo(session, round);
    }
    for (const auto length : window_lengths) {
        receive_from_window(session, length);
    }
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        echo(session, round);
    }
    session.close();
});

} // namespace

} // namespace ucxl::two_process

int main(int argc, char** argv)
{
    return ucxl::two_process::run_peer(argc, argv);
}
