#include "output_of.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::mpi_run
{

namespace
{

constexpr auto patience = std::chrono::seconds(10);

class pipe_ends
{
public:
    pipe_ends() { _is_open = pipe2(_ends.data(), O_CLOEXEC) == 0; }
    ~pipe_ends()
    {
        if (_is_open) {
            close(_ends[0]);
            close_writer();
        }
    }
    pipe_ends(const pipe_ends&)            = delete;
    pipe_ends& operator=(const pipe_ends&) = delete;

    explicit operator bool() const { return _is_open; }
    int reader() const { return _ends[0]; }
    int writer() const { return _ends[1]; }
    void close_writer()
    {
        if (_ends[1] >= 0) {
            close(_ends[1]);
            _ends[1] = -1;
        }
    }

private:
    std::array<int, 2> _ends{-1, -1};
    bool _is_open = false;
};

class spawn_settings
{
public:
    explicit spawn_settings(int standard_output)
    {
        posix_spawn_file_actions_init(&_actions);
        posix_spawn_file_actions_addopen(&_actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&_actions, standard_output, STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&_actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    ~spawn_settings() { posix_spawn_file_actions_destroy(&_actions); }
    spawn_settings(const spawn_settings&)            = delete;
    spawn_settings& operator=(const spawn_settings&) = delete;

    const posix_spawn_file_actions_t* actions() const { return &_actions; }

private:
    posix_spawn_file_actions_t _actions{};
};

// Until the end of the text or of the patience.
bool read_all(int file, std::string& text)
{
    const auto end = std::chrono::steady_clock::now() + patience;
    std::array<char, 4096> part{};
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd waited{.fd = file, .events = POLLIN, .revents = 0};
        const int ready = left.count() > 0 ? poll(&waited, 1, static_cast<int>(left.count())) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        const ssize_t length = read(file, part.data(), part.size());
        if (length <= 0) {
            return length == 0;
        }
        text.append(part.data(), static_cast<std::size_t>(length));
    }
}

} // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command)
{
    pipe_ends ends;
    if (!ends) {
        return std::nullopt;
    }
    std::vector<char*> arguments;
    for (const std::string& each : command) {
        arguments.push_back(const_cast<char*>(each.c_str()));
    }
    arguments.push_back(nullptr);
    pid_t started = 0;
    const spawn_settings settings(ends.writer());
    if (posix_spawnp(&started, arguments[0], settings.actions(), nullptr, arguments.data(), environ) != 0) {
        return std::nullopt;
    }
    ends.close_writer();
    std::string text;
    const bool is_complete = read_all(ends.reader(), text);
    if (!is_complete) {
        kill(started, SIGKILL);
    }
    while (waitpid(started, nullptr, 0) < 0 && errno == EINTR) {
    }
    return is_complete ? std::optional(text) : std::nullopt;
}

} // namespace ucxl::mpi_run
