#include "process.h"

#include "sanitizer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

using std::chrono::steady_clock;

[[noreturn]] void fail_by_errno(const std::string& call)
{
    throw std::system_error(errno, std::generic_category(), call);
}

std::vector<std::string> environment_with(const process_options& options)
{
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        const auto name        = text.substr(0, text.find('='));
        const bool is_replaced =
            std::ranges::any_of(options.variables, [&name](const auto& other) { return other.first == name; });
        // The report of the tests is this process's.
        const bool is_ucx_option = text.starts_with("UCX_") && name != "UCX_MODULES"; // which run-tests may set
        if (!is_replaced && !(options.without_ucx_options && is_ucx_option) && name != "GTEST_OUTPUT") {
            all.push_back(text);
        }
    }
    for (const auto& [name, value] : options.variables) {
        all.push_back(name + "=" + value);
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

// The start of a program's file. Programs for one processor have it in common: ELF, for which system and processor.
std::string kind_of(const std::string& path)
{
    std::array<char, 20> start{};
    std::ifstream(path, std::ios::binary).read(start.data(), start.size());
    return {start.data(), start.size()};
}

// If an emulator runs this process, it also has to run the programs that are for the same processor.
std::vector<std::string> emulator_for(const std::string& path)
{
    const char* const text = std::getenv("UCXL_TEST_EMULATOR");
    if (text == nullptr || kind_of(path) != kind_of(program_path(""))) {
        return {};
    }
    std::istringstream words(text);
    return {std::istream_iterator<std::string>(words), {}};
}

// Ends that no descriptor which the program is to see overwrites.
std::array<int, 2> open_pipe()
{
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        fail_by_errno("pipe2");
    }
    const int write = fcntl(ends[1], F_DUPFD_CLOEXEC, 100);
    if (write < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        fail_by_errno("fcntl");
    }
    close(ends[1]);
    return {ends[0], write};
}

} // namespace

process::process(const std::string& path, const std::vector<std::string>& arguments, const process_options& options)
{
    const auto out = open_pipe(), err = open_pipe();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, options.has_one_stream ? out[1] : err[1], STDERR_FILENO);
    for (std::size_t i = 0; i < options.descriptors.size(); ++i) {
        posix_spawn_file_actions_adddup2(&actions, options.descriptors[i], first_descriptor + static_cast<int>(i));
    }
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<std::string> command = emulator_for(path);
    command.push_back(path);
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto variables = environment_with(options);
    int error            = posix_spawn(&_pid, command.front().c_str(), &actions, &attributes, c_strings(command).data(),
                                       c_strings(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    close(err[1]);
    _pipes = {out[0], err[0]};
    if (error == 0) {
        _descriptor = static_cast<int>(syscall(SYS_pidfd_open, _pid, 0));
        error       = _descriptor < 0 ? errno : 0;
    }
    if (error != 0) {
        close(out[0]);
        close(err[0]);
        throw std::system_error(error, std::generic_category(), "starting " + path);
    }
}

process::~process()
{
    if (is_running()) {
        kill(SIGKILL);
        reap();
    }
    for (const int end : _pipes) {
        close(end);
    }
}

void process::kill(int signal)
{
    ::kill(-_pid, signal);
}

bool process::has_ended()
{
    pollfd ended{.fd = _descriptor, .events = POLLIN, .revents = 0};
    if (is_running() && poll(&ended, 1, 0) == 1) {
        reap();
    }
    return !is_running();
}

void process::read_all()
{
    for (std::size_t i = 0; i < _pipes.size(); ++i) {
        std::array<char, 4096> some;
        ssize_t length = 0;
        while (_pipes[i] >= 0 && (length = read(_pipes[i], some.data(), some.size())) != 0) {
            if (length > 0) {
                (i == 0 ? _ended.out : _ended.err).append(some.data(), static_cast<std::size_t>(length));
            } else if (errno != EINTR) {
                break;
            }
        }
        if (_pipes[i] >= 0 && length == 0) { // nobody can write to it any more
            close(_pipes[i]);
            _pipes[i] = -1;
        }
    }
}

void process::reap()
{
    int status = 0;
    rusage used{};
    while (wait4(_pid, &status, 0, &used) < 0 && errno == EINTR) {
    }
    close(_descriptor);
    _descriptor        = -1;
    const auto seconds = [](const timeval& used_time) {
        return static_cast<double>(used_time.tv_sec) + static_cast<double>(used_time.tv_usec) * 1e-6;
    };
    _ended.ran_s  = seconds(used.ru_utime) + seconds(used.ru_stime);
    _ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    read_all();
}

void process::wait_for_event(std::span<process* const> all, time deadline)
{
    std::vector<pollfd> events;
    for (const process* each : all) {
        if (each->is_running()) {
            for (const int fd : {each->_descriptor, each->_pipes[0], each->_pipes[1]}) {
                events.push_back({.fd = fd, .events = POLLIN, .revents = 0}); // below 0 it is not looked at
            }
        }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    poll(events.data(), events.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
    for (process* each : all) {
        each->read_all();
        each->has_ended();
    }
}

const std::string& process::out()
{
    read_all();
    return _ended.out;
}

bool process::wait_for_output(const std::string& text, std::chrono::seconds limit)
{
    process* const self = this;
    for (const time deadline = steady_clock::now() + limit * slower_by_sanitizer; !out().contains(text);) {
        if (!is_running() || steady_clock::now() > deadline) {
            return false;
        }
        wait_for_event({&self, 1}, deadline);
    }
    return true;
}

ended_process process::wait(std::chrono::seconds limit)
{
    process* const self = this;
    return wait_for_all({&self, 1}, limit).front();
}

std::vector<ended_process> wait_for_all(std::span<process* const> all, std::chrono::seconds limit)
{
    const auto is_running = [](process* each) { return each->is_running(); };
    auto deadline         = steady_clock::now() + limit * slower_by_sanitizer;
    while (std::ranges::any_of(all, is_running) && steady_clock::now() < deadline) {
        process::wait_for_event(all, deadline);
        if (std::ranges::any_of(all, [](process* each) { return !each->is_running() && each->_ended.status != 0; })) {
            deadline = std::min(deadline, steady_clock::now() + std::chrono::seconds(10) * slower_by_sanitizer);
        }
    }
    std::vector<ended_process> ended;
    for (process* each : all) {
        if (each->is_running()) {
            each->kill(SIGKILL);
            each->reap();
            each->_ended.timed_out = true;
            ADD_FAILURE() << "process " << each->_pid << " did not end in time\n"
                          << each->_ended.out << each->_ended.err;
        }
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
    if (folder.filename() != ".libs") {
        return (folder / name).string();
    }
    // The script that started this program has told where its libraries are. So the other program needs none, which
    // would take longer than the program.
    const auto behind_script = folder / name;
    return (exists(behind_script) ? behind_script : folder.parent_path() / name).string();
}

} // namespace ucxl::test
