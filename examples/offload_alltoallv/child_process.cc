#include "child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace examples
{

namespace
{

[[noreturn]] void throw_errno(const std::string& step)
{
    throw std::runtime_error(fmt::format("{}: {}", step, std::strerror(errno)));
}

std::array<int, 2> make_pipe()
{
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw_errno("pipe");
    }
    return ends;
}

[[noreturn]] void become(std::vector<std::string> command, const std::vector<default_variable>& variables, int input,
                         int output, pid_t launcher)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) {
        _exit(1); // it was gone before the line above
    }
    std::signal(SIGPIPE, SIG_DFL);
    for (const auto& [name, value] : variables) {
        setenv(name.c_str(), value.c_str(), 0);
    }
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    std::vector<char*> words;
    std::ranges::transform(command, std::back_inserter(words), [](std::string& text) { return text.data(); });
    words.push_back(nullptr);
    execvp(words[0], words.data());
    fmt::print(stderr, "offload_alltoallv: {} cannot be started: {}\n", command[0], std::strerror(errno));
    _exit(127);
}

} // namespace

child_process child_process::start(std::string name, const std::vector<std::string>& command,
                                   const std::vector<default_variable>& variables)
{
    const std::array<int, 2> to_child   = make_pipe();
    const std::array<int, 2> from_child = make_pipe();
    const pid_t launcher                = getpid();
    const pid_t pid                     = fork();
    if (pid == 0) {
        become(command, variables, to_child[0], from_child[1], launcher);
    }
    close(to_child[0]);
    close(from_child[1]);
    control messages(from_child[0], to_child[1]);
    if (pid < 0) {
        throw_errno("fork");
    }
    return {std::move(name), pid, std::move(messages)};
}

child_process::~child_process()
{
    if (_pid > 0) {
        kill(_pid, SIGKILL);
        how_it_ended();
    }
}

child_process::child_process(child_process&& other) noexcept
    : _name(std::move(other._name)), _pid(std::exchange(other._pid, -1)), _messages(std::move(other._messages))
{
}

void child_process::stop()
{
    siginfo_t how{};
    if (kill(_pid, SIGSTOP) != 0) {
        throw_errno("stopping " + _name);
    }
    // If it has ended instead, WNOWAIT leaves that for how_it_ended().
    while (waitid(P_PID, static_cast<id_t>(_pid), &how, WSTOPPED | WEXITED | WNOWAIT) != 0) {
        if (errno != EINTR) {
            throw_errno("waiting for the stop of " + _name);
        }
    }
    if (how.si_code == CLD_STOPPED) {
        waitid(P_PID, static_cast<id_t>(_pid), &how, WSTOPPED);
    }
}

void child_process::go_on() const
{
    kill(_pid, SIGCONT);
}

char child_process::state() const
{
    std::ifstream file(fmt::format("/proc/{}/stat", _pid));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(") "); // the name may contain anything
    return name_end == std::string::npos ? '?' : text[name_end + 2];
}

std::chrono::nanoseconds child_process::processor_time() const
{
    clockid_t clock{};
    timespec time{};
    if (const int failed = clock_getcpuclockid(_pid, &clock); failed != 0 || clock_gettime(clock, &time) != 0) {
        throw std::runtime_error(fmt::format("{} (pid {}) has no processor time", _name, _pid));
    }
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds child_process::settled_processor_time() const
{
    constexpr std::chrono::milliseconds pause{1};
    for (std::chrono::nanoseconds before = processor_time();;) {
        std::this_thread::sleep_for(pause);
        const std::chrono::nanoseconds now = processor_time();
        if (now == before) {
            return now;
        }
        before = now;
    }
}

std::string child_process::how_it_ended()
{
    constexpr std::chrono::seconds patience{10};
    constexpr std::chrono::milliseconds pause{2};
    const auto deadline = std::chrono::steady_clock::now() + patience;
    int status          = 0;
    while (waitpid(_pid, &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > deadline) {
            kill(_pid, SIGKILL);
        }
        std::this_thread::sleep_for(pause);
    }
    _pid = -1;
    if (WIFSIGNALED(status)) {
        return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

} // namespace examples
