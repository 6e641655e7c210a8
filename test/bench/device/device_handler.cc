#include "device_handler.h"

#include <csignal>
#include <cstdint>
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

void on_fault(int number, siginfo_t* fault, void* context)
{
    ++depth;
    devices.handler(number, fault, context);
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

bool is_in_device()
{
    return depth != 0;
}

} // namespace ucxl::bench
