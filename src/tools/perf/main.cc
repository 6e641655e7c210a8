// ucx_layout_perftest: compares layout windows with what users do without them, between two processes.
#include "client.h"
#include "options.h"
#include "server.h"
#include "tools/common/failure.h"
#include "tools/common/log.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using namespace ucxl::perf;
using ucxl::tools::give_up;

void run_on(std::span<const int> cpus)
{
    if (cpus.empty()) {
        return;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) {
        CPU_SET(cpu, &set);
    }
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        give_up("-c: {}", std::strerror(errno));
    }
}

// Runs one side. Reports its error here and, if possible, to the peer.
int run_side(void (*side)(const options&, oob_socket&), const options& options, oob_socket& peer)
{
    try {
        peer.greet();
        side(options, peer);
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        peer.send_failure(error.what());
        return EXIT_FAILURE;
    }
}

// Runs in the child: becomes a server on the inherited socket. It executes a fresh program, so that no state of UCX in
// this process, above all no lock, is carried over the fork.
[[noreturn]] void become_server(int fd, const options& options)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const std::string inherited = std::to_string(fd);
    const std::string cpu       = options.cpus.empty() ? "" : std::to_string(options.cpus.back());
    const char* const program   = "ucx_layout_perftest";
    if (cpu.empty()) {
        execl("/proc/self/exe", program, "--inherited", inherited.c_str(), nullptr);
    } else {
        execl("/proc/self/exe", program, "--inherited", inherited.c_str(), "-c", cpu.c_str(), nullptr);
    }
    _exit(EXIT_FAILURE);
}

int run_both(const options& options)
{
    auto [client_end, server_end] = oob_socket::pair();
    const pid_t child             = fork();
    if (child < 0) {
        give_up("fork: {}", std::strerror(errno));
    }
    if (child == 0) {
        become_server(server_end.inheritable(), options);
    }
    {
        const oob_socket unused = std::move(server_end);
    }
    run_on(std::span(options.cpus).first(std::min<std::size_t>(1, options.cpus.size())));
    const int own_status = run_side(run_client, options, client_end);
    {
        const oob_socket unused = std::move(client_end); // the server may still wait for a word
    }
    int child_status = 0;
    while (waitpid(child, &child_status, 0) < 0 && errno == EINTR) {
    }
    if (own_status == EXIT_SUCCESS && child_status != 0) {
        give_up("the server process ended with wait status {:#x}", static_cast<unsigned>(child_status));
    }
    return own_status;
}

int run(const options& options)
{
    if (options.self) {
        return run_both(options);
    }
    run_on(options.cpus);
    if (options.inherited) {
        oob_socket peer = oob_socket::inherit(*options.inherited);
        return run_side(run_server, options, peer);
    }
    if (options.host.empty()) {
        oob_socket peer = oob_socket::accept(options.port);
        fmt::print("Accepted connection from {}\n", peer.peer_name());
        std::fflush(stdout);
        return run_side(run_server, options, peer);
    }
    oob_socket peer = oob_socket::connect(options.host, options.port);
    return run_side(run_client, options, peer);
}

} // namespace

int main(int argc, char** argv)
{
    try {
        ucxl::tools::log_to_stderr();
        int exit_status                     = EXIT_SUCCESS;
        const std::optional<options> parsed = parse_options(argc, argv, &exit_status);
        return parsed ? run(*parsed) : exit_status;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        return EXIT_FAILURE;
    }
}
