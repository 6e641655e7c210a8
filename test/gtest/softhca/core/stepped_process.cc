#include "stepped_process.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace ucxl::softhca::test
{

std::optional<stepped_process> stepped_process::start(test_process& process, const std::function<void()>& work)
{
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
            _exit(77);
        }
        process.stop_when_locked = true;
        work();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
        return std::nullopt;
    }
    return stepped_process(process, child);
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
