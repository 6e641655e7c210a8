#include "child.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <format>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

using std::chrono::steady_clock;

// Descriptors of the parent that are handed on lie above all those the child gets, so that no dup2 overwrites another.
constexpr int first_own_fd = 100;

int out_of_the_way(int fd)
{
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, first_own_fd);
    const int error = errno;
    close(fd);
    if (moved < 0) {
        throw std::system_error(error, std::generic_category(), "fcntl(F_DUPFD_CLOEXEC)");
    }
    return moved;
}

std::vector<std::string> child_environment(const std::vector<std::pair<std::string, std::string>>& variables)
{
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (!text.starts_with("UCX_") && !text.starts_with("GTEST_")) {
            all.push_back(text);
        }
    }
    for (const auto& [name, value] : variables) {
        all.push_back(std::format("{}={}", name, value));
    }
    return all;
}

std::vector<char*> c_strings(const std::vector<std::string>& from)
{
    std::vector<char*> pointers;
    for (const auto& text : from) {
        pointers.push_back(const_cast<char*>(text.c_str())); // posix_spawn takes char*, and does not write
    }
    pointers.push_back(nullptr);
    return pointers;
}

} // namespace

channel_pairs::channel_pairs()
{
    for (auto& pair : _ends) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
            throw std::system_error(errno, std::generic_category(), "socketpair");
        }
        for (int& end : pair) {
            end = out_of_the_way(end);
        }
    }
}

channel_pairs::~channel_pairs()
{
    for (const auto& pair : _ends) {
        for (const int end : pair) {
            close(end);
        }
    }
}

std::array<int, num_channels> channel_pairs::ends(int role) const
{
    std::array<int, num_channels> ends;
    for (int i = 0; i < num_channels; ++i) {
        ends[static_cast<std::size_t>(i)] = _ends[i][role];
    }
    return ends;
}

child::child(const std::string& path, const std::vector<std::string>& arguments,
             const std::vector<std::pair<std::string, std::string>>& variables, std::array<int, num_channels> channels)
{
    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    _output         = out_of_the_way(output[0]);
    const int write = out_of_the_way(output[1]);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, write, STDERR_FILENO);
    for (int i = 0; i < num_channels; ++i) {
        posix_spawn_file_actions_adddup2(&actions, channels[static_cast<std::size_t>(i)], first_channel_fd + i);
    }
    std::vector<std::string> command{path};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto all_variables = child_environment(variables);
    const int error =
        posix_spawn(&_pid, path.c_str(), &actions, nullptr, c_strings(command).data(), c_strings(all_variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(write);
    if (error != 0) {
        close(_output);
        throw std::system_error(error, std::generic_category(), "posix_spawn " + path);
    }
    fcntl(_output, F_SETFL, O_NONBLOCK);
}

child::~child()
{
    if (_pid > 0) {
        kill(_pid, SIGKILL);
        reap();
    }
    if (_output >= 0) {
        close(_output);
    }
}

void child::read_output()
{
    char buffer[4096];
    for (;;) {
        const auto got = read(_output, buffer, sizeof(buffer));
        if (got > 0) {
            _ended.output.append(buffer, static_cast<std::size_t>(got));
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else {
            return;
        }
    }
}

static double seconds(const timeval& time)
{
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

void child::reap()
{
    int status = 0;
    rusage used{};
    while (wait4(_pid, &status, 0, &used) < 0 && errno == EINTR) {
    }
    _ended.ran_s       = seconds(used.ru_utime) + seconds(used.ru_stime);
    _pid               = -1;
    _ended.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    _ended.signal      = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    read_output();
}

std::vector<ended_child> wait_for(const std::vector<std::unique_ptr<child>>& children, unsigned deadline_s)
{
    auto deadline = steady_clock::now() + std::chrono::seconds(deadline_s);
    for (bool running = true; running;) {
        running = false;
        for (const auto& each : children) {
            if (each->_pid <= 0) {
                continue;
            }
            each->read_output();
            siginfo_t info{};
            waitid(P_PID, static_cast<id_t>(each->_pid), &info, WEXITED | WNOHANG | WNOWAIT);
            if (info.si_pid == each->_pid) {
                each->reap();
                if (each->_ended.exit_status != 0) {
                    deadline = std::min(deadline, steady_clock::now() + std::chrono::seconds(10));
                }
            } else if (steady_clock::now() > deadline) {
                kill(each->_pid, SIGKILL);
                each->reap();
                each->_ended.timed_out = true;
            } else {
                running = true;
            }
        }
        if (running) {
            poll(nullptr, 0, 2);
        }
    }
    std::vector<ended_child> ended;
    for (const auto& each : children) {
        ended.push_back(each->_ended);
    }
    return ended;
}

// libtool runs programs of the build folder from its .libs below; programs without libraries of ours stay beside it.
std::string program_path(const std::string& name)
{
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    if (name.empty()) {
        return self.string();
    }
    const auto folder = self.parent_path();
    return ((folder.filename() == ".libs" ? folder.parent_path() : folder) / name).string();
}

} // namespace ucxl::two_process
