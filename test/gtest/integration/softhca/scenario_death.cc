// Processes that are killed at any moment: the others continue.
#include "scenario.h"

#include "support/random.h"
#include "support/verbs_endpoint.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::address;
using ucxl::test::die;
using ucxl::test::endpoint;

namespace
{

constexpr std::size_t buffer_bytes = 1 << 20;

// Both directions of a connection between parent and child.
struct pipes {
    int up[2];
    int down[2];

    pipes()
    {
        if (::pipe(up) != 0 || ::pipe(down) != 0) {
            die("pipe");
        }
    }
    ~pipes()
    {
        for (const int fd : {up[0], up[1], down[0], down[1]}) {
            ::close(fd);
        }
    }
};

void give(int fd, const address& value)
{
    if (::write(fd, &value, sizeof(value)) != sizeof(value)) {
        die("write");
    }
}

bool take(int fd, address& value)
{
    return ::read(fd, &value, sizeof(value)) == sizeof(value);
}

// Writes to and reads from the peer as fast as it can, until one of them is killed.
void run_traffic(endpoint& here, std::uint64_t seed)
{
    ucxl::test::random random(seed);
    for (std::uint64_t id = 0;; ++id) {
        const std::size_t length = random.one_in(4) ? random.below(buffer_bytes / 2) : random.below(64);
        const auto opcode        = random.one_in(2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        if (!here.try_post(opcode, random.below(buffer_bytes / 2), random.below(buffer_bytes / 2), length, id)) {
            return;
        }
        const auto done = here.completion(30);
        if (!done) {
            die("no completion within 30 s");
        }
        if (done->status != IBV_WC_SUCCESS) {
            if (done->status != IBV_WC_RETRY_EXC_ERR && done->status != IBV_WC_WR_FLUSH_ERR) {
                die(std::string("an unexpected error: ") + ibv_wc_status_str(done->status));
            }
            return;
        }
    }
}

pid_t start_peer(pipes& to, std::uint64_t seed)
{
    const pid_t child = ::fork();
    if (child != 0) {
        return child;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    endpoint here(buffer_bytes);
    address peer{};
    give(to.up[1], here.own());
    if (!take(to.down[0], peer)) {
        ::_exit(0);
    }
    here.connect(peer);
    give(to.up[1], here.own()); // ready to receive
    if (!take(to.down[0], peer)) {
        ::_exit(0);
    }
    run_traffic(here, seed);
    ::_exit(0);
}

// Kills one of two processes that write to each other; the other one must see an error CQE.
void kill_one(std::uint64_t seed)
{
    ucxl::test::random random(seed);
    pipes to_first;
    pipes to_second;
    const pid_t first  = start_peer(to_first, seed);
    const pid_t second = start_peer(to_second, seed + 1);
    for (int round = 0; round < 2; ++round) { // addresses, then readiness
        address of_first{};
        address of_second{};
        if (!take(to_first.up[0], of_first) || !take(to_second.up[0], of_second)) {
            die("a process did not start");
        }
        give(to_first.down[1], of_second);
        give(to_second.down[1], of_first);
    }
    ::usleep(static_cast<useconds_t>(random.below(20'000))); // synchronises nothing: when the kill comes is open
    const bool kills_first = random.one_in(2);
    ::kill(kills_first ? first : second, SIGKILL);
    for (const pid_t ended : {first, second}) {
        int status = 0;
        ::waitpid(ended, &status, 0);
        const bool killed = ended == (kills_first ? first : second);
        if (killed ? !WIFSIGNALED(status) : status != 0) {
            die("UCXL_TEST_SEED=" + std::to_string(seed) + ": a process ended with " + std::to_string(status));
        }
    }
}

} // namespace

int killed(int with_its_parent)
{
    endpoint here(4096);
    if (with_its_parent != 0) {
        ::kill(::getppid(), SIGKILL);
    }
    ::kill(::getpid(), SIGKILL);
    return 0;
}

int killed_peers(int rounds)
{
    const std::uint64_t seed = ucxl::test::run_seed();
    for (int round = 0; round < rounds; ++round) {
        kill_one(seed + static_cast<std::uint64_t>(round) * 2);
    }
    // A new process finds a working device.
    endpoint here(4096);
    here.connect(here.own());
    here.write(0, 2048, 64, 1);
    here.finish_one();
    return 0;
}

} // namespace ucxl::softhca::test
