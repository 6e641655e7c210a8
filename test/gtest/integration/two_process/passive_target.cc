#include "passive_target.h"

#include "plain_peer.h"
#include "remote_key.h"
#include "transfer_batch.h"

#include <cerrno>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl::two_process
{

bytes wait_passively(session& session)
{
    for (;;) {
        if (auto message = session.side_channel().try_receive()) {
            return std::move(*message);
        }
        pollfd readable{session.side_channel().fd(), POLLIN, 0};
        poll(&readable, 1, -1);
    }
}

// Sends messages both ways first, so that the endpoints have nothing left to negotiate. Then role 0, which will access
// the other's memory, flushes alone. Over TCP a flush waits for the peer if anything was sent since the last flush,
// even the acknowledgement of the peer's flush.
void settle(session& session)
{
    echo(session, 0);
    session.flush();
    session.barrier();
    if (session.plays(0)) {
        session.flush();
    }
    session.barrier();
}

namespace
{

struct access_plan {
    bool is_put;
    std::uint64_t length;
    side_plan local;
    side_plan remote;
};

access_plan draw_access(test::random& random, side_kind remote)
{
    constexpr std::uint64_t lengths[] = {0, 1, 8, 64, 1000, 4096, 65536, 65536, 1 << 20};
    constexpr side_kind kinds[]       = {side_kind::host, side_kind::window, side_kind::allocated, side_kind::shared};
    access_plan plan{};
    plan.is_put = random.one_in(2);
    plan.length = lengths[random.below(std::size(lengths))];
    plan.local  = {.kind      = kinds[random.below(4)],
                   .seed      = random.next(),
                   .before    = random.below(200),
                   .after     = random.below(200),
                   .pass_memh = random.one_in(2)};
    plan.remote = {.kind = remote, .seed = random.next(), .before = random.below(200), .after = random.below(200)};
    return plan;
}

void own_target(session& session, const access_plan& plan, unsigned salt)
{
    side target(session, plan.remote, plan.length);
    if (!plan.is_put) {
        target.put_message(test_pattern(plan.length, salt));
    }
    bytes key;
    append_key(key, session.context(), target.memh(), target.buffer());
    session.side_channel().send(key);
    wait_passively(session);
    if (plan.is_put) {
        target.expect_message(test_pattern(plan.length, salt));
    }
    target.verify();
    session.side_channel().send({});
}

void access_target(session& session, const access_plan& plan, unsigned salt)
{
    side local(session, plan.local, plan.length);
    const bytes expected            = wait_passively(session);
    std::span<const std::byte> rest = expected;
    const remote_key key(session.endpoint(), rest);
    ucp_request_param_t param{};
    local.describe_to(param);
    if (plan.is_put) {
        local.put_message(test_pattern(plan.length, salt));
        check_ok(session.wait(
                     ucp_put_nbx(session.endpoint(), local.buffer(), local.count(), key.address(), key.get(), &param)),
                 "ucp_put_nbx");
    } else {
        local.expect_message(test_pattern(plan.length, salt));
        check_ok(session.wait(
                     ucp_get_nbx(session.endpoint(), local.buffer(), local.count(), key.address(), key.get(), &param)),
                 "ucp_get_nbx");
    }
    session.flush();
    session.side_channel().send({});
    wait_passively(session);
    local.verify();
}

} // namespace

void passive_target(const peer_arguments& arguments, side_kind remote)
{
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        const access_plan plan = draw_access(random, remote);
        arguments.plays(1) ? own_target(session, plan, round) : access_target(session, plan, round);
    }
    session.close();
}

void wait_for_death(pid_t pid)
{
    const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (process < 0 && errno == ESRCH) {
        return; // its parent has reaped it
    }
    check(process >= 0, "pidfd_open failed");
    pollfd ended{process, POLLIN, 0};
    poll(&ended, 1, -1);
    close(process);
}

} // namespace ucxl::two_process
