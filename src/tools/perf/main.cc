// ucx_layout_perftest: compares layout windows with what users do without them, between two processes.
#include "client.h"
#include "contention.h"
#include "options.h"
#include "server.h"
#include "tools/common/failure.h"
#include "tools/common/log.h"
#include "tools/common/number.h"
#include "tools/common/output.h"
#include "xgvmi_setup.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

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
int run_side(const options& options, oob_socket& peer, bool is_server, oob_socket* owner = nullptr)
{
    try {
        const errand theirs = peer.greet(errand_of(options));
        if (owner != nullptr) {
            owner->greet(errand::exports);
        }
        if (is_server) {
            run_server(options, peer, theirs);
        } else if (errand_of(options) == errand::contention) {
            add_to_variable(options, peer);
        } else {
            run_client(options, peer, owner);
        }
        return EXIT_SUCCESS;
    } catch (const peer_failure& error) {
        // The parent has printed it to the same terminal.
        if (!options.inherited) {
            fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        peer.send_failure(error.what());
        if (owner != nullptr) {
            owner->send_failure(error.what());
        }
    }
    return EXIT_FAILURE;
}

// Runs in the child: becomes this program with these arguments, on the inherited socket. It executes a fresh program,
// so that no state of UCX in this process, above all no lock, is carried over the fork.
[[noreturn]] void execute_again(int fd, std::vector<std::string> arguments, std::span<const int> cpus,
                                const variables& environment)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    set_defaults(environment);
    arguments.insert(arguments.begin(), {"ucx_layout_perftest", "--inherited", std::to_string(fd)});
    for (const int cpu : cpus) {
        arguments.insert(arguments.end(), {"-c", std::to_string(cpu)});
    }
    std::vector<char*> pointers;
    std::ranges::transform(arguments, std::back_inserter(pointers), [](std::string& text) { return text.data(); });
    pointers.push_back(nullptr);
    execv("/proc/self/exe", pointers.data());
    _exit(EXIT_FAILURE);
}

struct child_process {
    pid_t pid;
    oob_socket socket;
};

child_process start_child(const std::vector<std::string>& arguments, std::span<const int> cpus,
                          const variables& environment = {})
{
    auto [own_end, child_end] = oob_socket::pair();
    const pid_t child         = fork();
    if (child < 0) {
        give_up("fork: {}", std::strerror(errno));
    }
    if (child == 0) {
        execute_again(child_end.inheritable(), arguments, cpus, environment);
    }
    return {.pid = child, .socket = std::move(own_end)};
}

// Returns its exit status, and reports one that no text of its own explains.
int wait_for(child_process child, const char* name)
{
    {
        const oob_socket unused = std::move(child.socket); // it may still wait for a word
    }
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fmt::print(stderr, "ucx_layout_perftest: the {} process (pid {}) was ended by signal {}\n", name, child.pid,
                   WTERMSIG(status));
    }
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_both(const options& options)
{
    const std::span cpus(options.cpus);
    const std::size_t one = std::min<std::size_t>(1, cpus.size());
    std::optional<child_process> owner;
    variables own_variables;
    if (has_owner(options.test)) {
        const variables for_owner = owner_variables(options);
        own_variables             = dpu_variables(options);
        owner.emplace(start_child({}, cpus.last(one), for_owner));
        owner->socket.set_peer_name("the host process");
    }
    child_process server = start_child({}, cpus.last(one), own_variables);
    set_defaults(own_variables);
    run_on(cpus.first(one));
    const int own_status = run_side(options, server.socket, false, owner ? &owner->socket : nullptr);
    const int ended_well = wait_for(std::move(server), "server") + (owner ? wait_for(*std::move(owner), "host") : 0);
    return own_status == EXIT_SUCCESS && ended_well != 0 ? EXIT_FAILURE : own_status;
}

// The variable of contended_fadd is in this process.
int serve_contention(const options& options, std::span<oob_socket> processes)
{
    try {
        return own_variable(options, processes) ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        return EXIT_FAILURE;
    }
}

void welcome(const options& options, oob_socket& process)
{
    if (process.greet(errand_of(options)) != errand::contention) {
        process.send_failure("this server waits for the processes of contended_fadd");
        give_up("{} came for another test than contended_fadd", process.peer_name());
    }
}

// Names those that a signal ended. The others have been told to end, and get some time for it.
bool reap(std::span<const pid_t> children)
{
    constexpr std::chrono::seconds patience{10};
    constexpr std::chrono::milliseconds pause{5};
    const auto deadline = std::chrono::steady_clock::now() + patience;
    bool all_are_well   = true;
    for (std::size_t i = 0; i < children.size(); ++i) {
        int status = 0;
        while (waitpid(children[i], &status, WNOHANG) == 0) {
            if (std::chrono::steady_clock::now() > deadline) {
                kill(children[i], SIGKILL);
            }
            std::this_thread::sleep_for(pause);
        }
        if (WIFSIGNALED(status)) {
            fmt::print(stderr, "ucx_layout_perftest: process {} (pid {}) was ended by signal {}\n", i, children[i],
                       WTERMSIG(status));
        }
        all_are_well = all_are_well && status == 0;
    }
    return all_are_well;
}

int run_all_of_contention(const options& options)
{
    std::vector<pid_t> children;
    std::vector<oob_socket> sockets;
    const std::span cpus(options.cpus);
    const std::size_t one = std::min<std::size_t>(1, cpus.size());
    for (std::uint32_t i = 0; i < options.processes.value_or(default_processes); ++i) {
        const std::size_t first = cpus.empty() ? 0 : i % cpus.size();
        child_process child     = start_child({"-t", "contended_fadd"}, cpus.subspan(first, one));
        children.push_back(child.pid);
        sockets.push_back(std::move(child.socket));
        sockets.back().set_peer_name(fmt::format("process {} (pid {})", i, child.pid));
    }
    run_on(cpus.last(one));
    int status = EXIT_FAILURE;
    try {
        std::ranges::for_each(sockets, [&](oob_socket& each) { welcome(options, each); });
        status = serve_contention(options, sockets);
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
    }
    sockets.clear();
    return reap(children) ? status : EXIT_FAILURE;
}

int run_contention_server(const options& options)
{
    std::uint32_t number            = 0;
    std::vector<oob_socket> sockets = oob_socket::accept(options.port, *options.processes, [&](oob_socket& process) {
        process.set_peer_name(fmt::format("process {} ({})", number++, process.peer_name()));
        fmt::print("Accepted connection from {}\n", process.peer_name());
        std::fflush(stdout);
        welcome(options, process);
    });
    return serve_contention(options, sockets);
}

oob_socket connect_to_owner(const options& options)
{
    const std::size_t colon           = options.owner.rfind(':');
    const std::string host            = options.owner.substr(0, colon);
    std::optional<std::uint64_t> port = options.port;
    if (colon != std::string::npos) {
        port = ucxl::tools::parse_size(options.owner.substr(colon + 1));
    }
    if (!port || *port == 0 || *port > UINT16_MAX || host.empty()) {
        give_up("--owner: \"{}\" is not HOST or HOST:PORT", options.owner);
    }
    return oob_socket::connect(host, static_cast<std::uint16_t>(*port));
}

int run(const options& options)
{
    const bool is_contention = errand_of(options) == errand::contention;
    if (options.self) {
        return is_contention ? run_all_of_contention(options) : run_both(options);
    }
    run_on(options.cpus);
    if (options.inherited) {
        oob_socket peer = oob_socket::inherit(*options.inherited);
        return run_side(options, peer, !is_contention);
    }
    if (options.host.empty()) {
        if (options.processes) {
            return run_contention_server(options);
        }
        oob_socket peer = oob_socket::accept(options.port);
        fmt::print("Accepted connection from {}\n", peer.peer_name());
        std::fflush(stdout);
        return run_side(options, peer, true);
    }
    oob_socket peer = oob_socket::connect(options.host, options.port);
    if (!has_owner(options.test)) {
        return run_side(options, peer, false);
    }
    set_dpu_defaults();
    oob_socket owner = connect_to_owner(options);
    return run_side(options, peer, false, &owner);
}

} // namespace

int main(int argc, char** argv)
{
    try {
        ucxl::tools::log_to_stderr();
        int exit_status                     = EXIT_SUCCESS;
        const std::optional<options> parsed = parse_options(argc, argv, &exit_status);
        if (parsed) {
            exit_status = run(*parsed);
        }
        ucxl::tools::flush_output();
        return exit_status;
    } catch (const std::exception& error) {
        fmt::print(stderr, "ucx_layout_perftest: {}\n", error.what());
        return EXIT_FAILURE;
    }
}
