// Processes that lack what windows need: UCX_TLS leaves lay_copy out, or a peer does not load the library.
#include "plain_peer.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include <algorithm>

namespace ucxl::two_process
{

namespace
{

void run_host_batches(session& session)
{
    for (unsigned round = 0; round < session.arguments().rounds; ++round) {
        test::random random(test::derive_seed(session.arguments().seed, round));
        auto plan = random_batch(
            random, {.operations = {operation::tag, operation::stream, operation::am, operation::put, operation::get},
                     .lengths    = {0, 1, 64, 4096, 65536, 1 << 20}});
        for (auto& transfer : plan.transfers) {
            for (auto& each : transfer.sides) {
                each.kind = each.kind == side_kind::datatype ? side_kind::datatype : side_kind::host;
            }
        }
        run_batch(session, plan);
    }
}

// Every way to make a window reports what is missing. Host memory and datatypes do not need lay_copy.
void without_lay_copy(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const auto layout = ucx_layout::layout::create_strided(8, {{100, 32}});
    check(layout.has_value(), "ucp_layout_create failed");
    std::vector<std::byte> memory(100 * 32);
    for (int turn = 0; turn < 2; ++turn) {
        const auto mapped = ucx_layout::window::map(context.get(), *layout, memory.data());
        check(!mapped && mapped.error() == UCS_ERR_NO_DEVICE, "ucp_layout_map gave {}",
              ucs_status_string(mapped ? UCS_OK : mapped.error()));
        const auto allocated = ucx_layout::window::allocate(context.get(), *layout);
        check(!allocated && allocated.error() == UCS_ERR_NO_DEVICE, "ucp_layout_map with ALLOCATE gave {}",
              ucs_status_string(allocated ? UCS_OK : allocated.error()));
        run_host_batches(session);
    }
    session.close();
}

void send_window(session& session, std::size_t length)
{
    side window(session, {.kind = side_kind::window, .seed = 3}, length);
    window.put_message(test_pattern(length, 0));
    const ucp_request_param_t param{};
    check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.buffer(), window.count(), length, &param)),
             "ucp_tag_send_nbx");
    window.verify();
}

// The other peer is stock UCX. Host memory works both ways, and messages from windows arrive, because the sender stages
// them.
void beside_plain_peer(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        echo(session, round);
    }
    for (const auto length : window_lengths) {
        send_window(session, length);
    }
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        echo(session, round);
    }
    session.close();
}

const scenario incomplete("without_lay_copy", without_lay_copy);
const scenario plain("plain_peer", beside_plain_peer);

class without_transport : public testing::TestWithParam<std::tuple<const char*, const char*>>
{
};

std::string incomplete_name(const testing::TestParamInfo<std::tuple<const char*, const char*>>& info)
{
    std::string name = std::get<0>(info.param);
    std::ranges::replace(name, ',', '_');
    std::ranges::replace(name, '^', '_');
    return name + (*std::get<1>(info.param) == 'y' ? "_v2" : "_v1");
}

TEST_P(without_transport, map_says_what_to_set_and_host_memory_works)
{
    const auto& [tls, protocols] = GetParam();
    pair_config config{
        .scenario = "without_lay_copy", .variables = {{"UCX_TLS", tls}, {"UCX_PROTO_ENABLE", protocols}}, .rounds = 4};
    for (auto& peer : config.expected) {
        peer.output = "ERROR.*UCX_TLS.*lay_copy";
    }
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(
    matrix, without_transport,
    testing::Combine(is_on_device() ? testing::ValuesIn<std::vector<const char*>>({"^lay_copy", "rc_x,lay_shm"})
                                    : testing::ValuesIn<std::vector<const char*>>({"posix", "posix,cma", "tcp",
                                                                                   "sysv,self", "^lay_copy",
                                                                                   "posix,cma,lay_shm", "tcp,lay_cma"}),
                     testing::ValuesIn(protocols_of_most())),
    incomplete_name);

// Only eager messages. For a rendezvous from a window the plain peer logs "cannot find remote protocol for: rndv_recv
// into host memory from rdma" (protocols of the second kind, UCX 1.18), and the requests of both sides never end.
class plain_peer : public testing::TestWithParam<setting>
{
};

TEST_P(plain_peer, exchanges_host_memory_and_receives_from_windows)
{
    auto config        = config_for(GetParam(), "plain_peer", 5);
    config.programs[1] = peer_program::plain;
    config.variables.emplace_back("UCX_RNDV_THRESH", "inf");
    if (std::get<0>(GetParam()).tls != nullptr) {
        config.expected[1].output = "WARN  transport 'lay_copy' is not available"; // which UCX_TLS asks for
    }
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, plain_peer,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "tcp"},
                                                                       {"rc_x", "default"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
