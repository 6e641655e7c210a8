#include "stepped_process.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <format>
#include <stdexcept>
#include <utility>

namespace ucxl::softhca::test
{

namespace
{

constexpr int cannot_be_traced = 77; // exit status

} // namespace

std::optional<stepped_process> stepped_process::start(test_process& process, const std::function<void()>& work)
{
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
            _exit(cannot_be_traced);
        }
        process.stop_when_locked = true;
        work();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_be_traced) {
        return std::nullopt;
    }
    if (WIFSTOPPED(status)) {
        stepped_process stopped(process, child); // also by a signal that would end it
        if (WSTOPSIG(status) == SIGSTOP) {
            return stopped;
        }
    }
    throw std::runtime_error(std::format("wait status {:#x} of a process before it got the lock", status));
}

stepped_process::stepped_process(stepped_process&& from) noexcept
    : _process(from._process), _child(std::exchange(from._child, 0))
{
}

stepped_process::~stepped_process()
{
    kill();
}

bool stepped_process::step()
{
    if (!_process.has_lock() || ptrace(PTRACE_SINGLESTEP, _child, nullptr, nullptr) != 0) {
        return false;
    }
    int status = 0;
    waitpid(_child, &status, 0);
    return true;
}

#if defined(__x86_64__)
namespace
{

constexpr auto place_of_next = offsetof(user_regs_struct, rip);
constexpr long trap          = 0xcc; // int3
constexpr long lowest_byte   = 0xff;

} // namespace

std::uintptr_t stepped_process::place() const
{
    return static_cast<std::uintptr_t>(ptrace(PTRACE_PEEKUSER, _child, place_of_next, nullptr));
}

bool stepped_process::run_to(std::uintptr_t place)
{
    const long there = ptrace(PTRACE_PEEKTEXT, _child, place, nullptr);
    if (place == 0 || ptrace(PTRACE_POKETEXT, _child, place, (there & ~lowest_byte) | trap) != 0) {
        return false;
    }
    int status = 0;
    ptrace(PTRACE_CONT, _child, nullptr, nullptr);
    waitpid(_child, &status, 0);
    if (!WIFSTOPPED(status)) {
        _child = 0;
        throw std::runtime_error("the process ended before it came there");
    }
    ptrace(PTRACE_POKETEXT, _child, place, there);
    ptrace(PTRACE_POKEUSER, _child, place_of_next, place); // the trap was executed
    return true;
}
#else
std::uintptr_t stepped_process::place() const
{
    return 0;
}

bool stepped_process::run_to(std::uintptr_t)
{
    return false;
}
#endif

void stepped_process::kill()
{
    if (_child != 0) {
        ::kill(_child, SIGKILL);
        int status = 0;
        waitpid(_child, &status, 0);
        _child = 0;
    }
}

} // namespace ucxl::softhca::test
