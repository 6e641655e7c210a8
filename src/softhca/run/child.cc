#include "child.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::softhca::run
{
namespace
{

constexpr int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

volatile pid_t child = 0;

// Signals of the terminal reach the command anyway, because it is in the same process group.
void forward(int number, siginfo_t* info, void*)
{
    if (child > 0 && info->si_code <= 0) {
        const int saved = errno;
        ::kill(child, number);
        errno = saved;
    }
}

sigset_t forwarded_set()
{
    sigset_t all;
    sigemptyset(&all);
    for (const int number : forwarded) {
        sigaddset(&all, number);
    }
    return all;
}

void forward_signals()
{
    struct sigaction action = {};
    action.sa_sigaction     = forward;
    action.sa_flags         = SA_SIGINFO | SA_RESTART;
    for (const int number : forwarded) {
        struct sigaction before = {};
        ::sigaction(number, nullptr, &before);
        if (before.sa_handler != SIG_IGN) { // nohup
            ::sigaction(number, &action, nullptr);
        }
    }
}

// Whose parent ignores SIGCHLD, inherits that, and the system then keeps no status of its children. Returns the action
// from before.
struct sigaction wait_for_children()
{
    struct sigaction usual  = {};
    struct sigaction before = {};
    usual.sa_handler        = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, &before);
    return before;
}

[[noreturn]] void execute(const std::vector<std::string>& command, const std::vector<variable>& environment)
{
    for (const variable& each : environment) {
        ::setenv(each.name.c_str(), each.value.c_str(), 1);
    }
    std::vector<char*> arguments;
    for (const std::string& each : command) {
        arguments.push_back(const_cast<char*>(each.c_str()));
    }
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    fmt::print(stderr, "softhca-run: {}: {}\n", command.front(), std::strerror(error));
    ::_exit(error == ENOENT ? 127 : 126);
}

} // namespace

ending run_command(const std::vector<std::string>& command, const std::vector<variable>& environment)
{
    // A signal between fork() and the handlers would be lost for the command.
    const sigset_t held = forwarded_set();
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &held, &before);
    const struct sigaction inherited = wait_for_children();
    const pid_t started              = ::fork();
    if (started == 0) {
        ::sigaction(SIGCHLD, &inherited, nullptr);
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        execute(command, environment);
    }
    if (started < 0) {
        const int error = errno;
        fmt::print(stderr, "softhca-run: fork: {}\n", std::strerror(error));
        return {.status = 126, .signal = 0};
    }
    child = started;
    forward_signals();
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    int status  = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(started, &status, 0)) < 0 && errno == EINTR) {
    }
    const int error = errno;
    child           = 0;
    if (ended < 0) {
        fmt::print(stderr, "softhca-run: waitpid: {}\n", std::strerror(error));
        return {.status = 126, .signal = 0};
    }
    return WIFSIGNALED(status) ? ending{.status = 0, .signal = WTERMSIG(status)}
                               : ending{.status = WEXITSTATUS(status), .signal = 0};
}

void end_like(const ending& how)
{
    if (how.signal != 0) {
        const rlimit no_core{.rlim_cur = 0, .rlim_max = 0}; // the core of the command is enough
        ::setrlimit(RLIMIT_CORE, &no_core);
        std::signal(how.signal, SIG_DFL);
        ::raise(how.signal);
        std::exit(128 + how.signal);
    }
    std::exit(how.status);
}

} // namespace ucxl::softhca::run
