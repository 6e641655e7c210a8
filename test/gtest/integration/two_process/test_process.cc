// What happens to processes: they fork, they run threads, they are killed.
#include "passive_target.h"
#include "plain_peer.h"
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include "support/leak_checks.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

const batch_options usual_batch = {
    .operations = {operation::tag, operation::stream, operation::am, operation::put, operation::get},
    .lengths    = {0, 1, 64, 4096, 65536, 300000},
};

void run_batches(session& session, std::uint64_t seed, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; ++round) {
        test::random random(test::derive_seed(seed, round));
        run_batch(session, random_batch(random, usual_batch));
    }
}

// The child ends by exit(), with all exit handlers, or by _exit().
void fork_child(bool with_exit_handlers)
{
    const pid_t pid = fork();
    check(pid >= 0, "fork failed");
    if (pid == 0) {
        const auto layout = ucx_layout::layout::create_strided(8, {{100, 32}});
        const int status  = layout && layout->packed_length() == 800 ? 0 : 3;
        test::skip_leak_check(); // the parent's UCX objects end with the process, not through their owners
        with_exit_handlers ? std::exit(status) : _exit(status);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the forked child ended with status {:#x}", status);
}

void forks(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const side_plan window{.kind = side_kind::window, .seed = 5};
    const side_plan allocated{.kind = side_kind::allocated, .seed = 6};
    side first(session, window, 10000), second(session, allocated, 10000);
    run_batches(session, arguments.seed, arguments.rounds);
    fork_child(true);
    run_batches(session, arguments.seed + 1, arguments.rounds);
    fork_child(false);
    run_batches(session, arguments.seed + 2, arguments.rounds);
    first.verify();
    second.verify();
    session.close();
}

// One worker per thread, one context for all: both threads map and unmap windows all the time.
void threads(const peer_arguments& arguments)
{
    const context_handle context(arguments, true);
    std::vector<std::thread> running;
    for (unsigned i = 0; i < static_cast<unsigned>(num_channels); ++i) {
        running.emplace_back([&, i] {
            auto own   = arguments;
            own.thread = i;
            session session(own, context);
            run_batches(session, test::derive_seed(arguments.seed, 77 + i), arguments.rounds);
            session.close();
        });
    }
    for (auto& thread : running) {
        thread.join();
    }
}

constexpr std::uint64_t long_transfer = 64 << 20;

// Role 1 dies when its window begins to be filled, or before it ever receives. Role 0 must detect it and end properly.
void killed(const peer_arguments& arguments, bool receives)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    test::random random(arguments.seed);
    side own(session, {.kind = side_kind::window, .seed = 9u + arguments.role}, long_transfer);
    ucp_request_param_t param{};
    own.describe_to(param);
    // UCX 1.18.1 aborts by an assertion of its own if a peer dies while TCP connects to it.
    settle(session);
    // The first rendezvous makes UCX ask the peer for the number of its endpoint. Until the answer comes, UCX 1.18.1
    // looks for no sign of life (ucp_wireup_ep_check), and over datagrams its own thread acknowledges the question at
    // the peer. Such a peer is never missed: docs/limits.md.
    echo(session, round_by_rendezvous);
    if (arguments.role == 1) {
        if (receives) {
            ucp_tag_recv_nbx(session.worker(), own.buffer(), own.count(), 0, 0, &param);
        }
        session.barrier();
        if (receives) {
            while (!own.has_begun()) {
                session.turn();
            }
        } else {
            // UCX's own thread acknowledges all datagrams meanwhile, so that only keepalive can find out.
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
        raise(SIGKILL);
    }
    session.barrier();
    const auto sent = session.wait(ucp_tag_send_nbx(session.endpoint(), own.buffer(), own.count(), 0, &param));
    check(UCS_STATUS_IS_ERR(sent), "sending to a dead peer ended with {}", ucs_status_string(sent));
    while (session.endpoint_error() == UCS_OK) {
        session.turn();
    }
    session.abandon();
    own.verify();
}

const scenario forking("forks", forks);
const scenario threading("threads", threads);
const scenario killed_receiving("killed_receiving", [](const peer_arguments& arguments) { killed(arguments, true); });
const scenario killed_silent("killed_silent", [](const peer_arguments& arguments) { killed(arguments, false); });

class processes : public testing::TestWithParam<setting>
{
};

TEST_P(processes, fork_leaves_parent_and_child_working)
{
    // The thread of UCX's virtual file system may deadlock a child's exit handlers, see docs/limits.md.
    auto config = config_for(GetParam(), "forks", 3);
    config.variables.emplace_back("UCX_VFS_ENABLE", "n");
    if (is_on_device()) {
        // Else ibv_reg_mr takes registered pages, and what lies beside them on the heap, from the child. It does so on
        // kernels before 5.12, and on the software device, which cannot say that it copies them. UCX warns of it.
        for (auto& peer : config.expected) {
            peer.any_output = true;
        }
        config.variables.emplace_back("UCX_IB_FORK_INIT", "n");
    }
    EXPECT_PAIR(config);
}

TEST_P(processes, two_threads_with_a_worker_each)
{
    EXPECT_PAIR(config_for(GetParam(), "threads", 8));
}

INSTANTIATE_TEST_SUITE_P(matrix, processes,
                         testing::Combine(testing::ValuesIn(transports({"posix", "tcp"}, {"rc_x", "far"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

class killed_peer : public testing::TestWithParam<setting>
{
protected:
    static pair_config config(const char* scenario_name)
    {
        auto created               = config_for(GetParam(), scenario_name, 1);
        created.expected[1].signal = SIGKILL;
        notice_failures_soon(created.variables);
        return created;
    }
};

TEST_P(killed_peer, sender_of_a_transfer_under_way_gets_an_error)
{
    EXPECT_PAIR(config("killed_receiving"));
}

TEST_P(killed_peer, sender_of_a_transfer_not_begun_gets_an_error)
{
    EXPECT_PAIR(config("killed_silent"));
}

INSTANTIATE_TEST_SUITE_P(matrix, killed_peer,
                         testing::Combine(testing::ValuesIn(transports({"tcp"}, {"rc_x", "rc_v", "dc_x", "ud_x"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
