#include "device_time.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl::bench
{

namespace
{

// As the kernel has it (struct sigaction of asm/signal.h, x86-64 and arm64). The program's sigaction() is the device's,
// which keeps its handler to itself.
struct kernel_action {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
};

kernel_action devices;
thread_local unsigned depth = 0; // copies of the device may fault in turn
std::atomic<std::uint64_t> spent_ns{0}, num_doorbells{0};

void on_fault(int number, siginfo_t* fault, void* context)
{
    if (depth++ != 0) {
        devices.handler(number, fault, context);
    } else {
        const std::uint64_t begin = cpu_ns();
        devices.handler(number, fault, context);
        spent_ns += cpu_ns() - begin;
        ++num_doorbells;
    }
    --depth;
}

} // namespace

void watch_device()
{
    const auto change = [](const kernel_action* to, kernel_action* from) {
        return syscall(SYS_rt_sigaction, SIGSEGV, to, from, sizeof(std::uint64_t)) == 0;
    };
    kernel_action found{};
    if (!change(nullptr, &found) || (found.flags & SA_SIGINFO) == 0 || found.handler == nullptr) {
        throw std::runtime_error("the software device handles no doorbells in this process");
    }
    if (found.handler == on_fault) {
        return;
    }
    devices       = found;
    found.handler = on_fault;
    if (!change(&found, nullptr)) {
        throw std::runtime_error("rt_sigaction");
    }
}

device_time time_in_device()
{
    return {spent_ns, num_doorbells};
}

bool is_in_device()
{
    return depth != 0;
}

std::uint64_t cpu_ns()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

} // namespace ucxl::bench
