#include "process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ucxl::test
{

namespace
{

std::string path_of_tool(const std::string& name)
{
    std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    if (folder.filename() == ".libs") {
        folder = folder.parent_path(); // where libtool puts the program itself
    }
    return folder / name;
}

std::string content_of(int fd)
{
    std::string text;
    std::array<char, 4096> buffer{};
    for (off_t at = 0;;) {
        const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
        if (got <= 0) {
            return text;
        }
        text.append(buffer.data(), static_cast<std::size_t>(got));
        at += got;
    }
}

} // namespace

process::process(const std::string& name, const std::vector<std::string>& arguments, const environment& extra)
    : _out(memfd_create("out", MFD_CLOEXEC)), _err(memfd_create("err", MFD_CLOEXEC))
{
    const std::string path = path_of_tool(name);
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    _pid = fork();
    if (_pid == 0) {
        setpgid(0, 0);
        dup2(_out, STDOUT_FILENO);
        dup2(_err, STDERR_FILENO);
        for (const auto& [key, value] : extra) {
            setenv(key.c_str(), value.c_str(), 1);
        }
        execv(path.c_str(), argv.data());
        _exit(127);
    }
    setpgid(_pid, _pid);
}

process::~process()
{
    if (!_ended && _pid > 0) {
        ::kill(-_pid, SIGKILL);
        waitpid(_pid, nullptr, 0);
    }
    close(_out);
    close(_err);
}

void process::kill(int signal)
{
    ::kill(-_pid, signal);
}

bool process::has_ended()
{
    int status = 0;
    if (!_ended && waitpid(_pid, &status, WNOHANG) == _pid) {
        _ended  = true;
        _status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return _ended;
}

std::string process::out() const
{
    return content_of(_out);
}

outcome process::wait(std::chrono::seconds limit)
{
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!has_ended()) {
        if (std::chrono::steady_clock::now() > deadline) {
            ::kill(-_pid, SIGKILL);
            waitpid(_pid, nullptr, 0);
            _ended = true;
            ADD_FAILURE() << "no end after " << limit.count() << " s\n" << out() << content_of(_err);
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {.status = _status, .out = out(), .err = content_of(_err)};
}

outcome run_tool(const std::string& name, const std::vector<std::string>& arguments, const process::environment& extra)
{
    return process(name, arguments, extra).wait();
}

std::string free_port()
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length   = sizeof(address);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
        throw std::system_error(errno, std::generic_category(), "bind");
    }
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    close(fd);
    return std::to_string(ntohs(address.sin_port));
}

} // namespace ucxl::test
