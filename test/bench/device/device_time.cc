#include "device_time.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
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

constexpr std::size_t page_bytes = 4096;
const void* trial_page           = nullptr;

// Stores one word at the beginning of the page, by an instruction of known length.
void store_to_trial_page()
{
#if defined(__x86_64__)
    asm volatile("movl %%eax, (%%rcx)" : : "a"(0), "c"(trial_page) : "memory");
#else
    asm volatile("str wzr, [%0]" : : "r"(trial_page) : "memory");
#endif
}

void skip_store(void* context)
{
    auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    machine.gregs[REG_RIP] += 2;
#else
    machine.pc += 4;
#endif
}

void handle(int number, siginfo_t* fault, void* context)
{
    if (trial_page != nullptr && fault->si_addr == trial_page) {
        skip_store(context);
    } else {
        devices.handler(number, fault, context);
    }
}

void on_fault(int number, siginfo_t* fault, void* context)
{
    if (depth++ != 0) {
        devices.handler(number, fault, context);
    } else {
        const std::uint64_t begin = cpu_ns();
        handle(number, fault, context);
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

double trap_ns()
{
    constexpr unsigned times = 2000;
    void* const page         = mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        throw std::runtime_error("mmap");
    }
    trial_page                = page;
    const device_time before  = time_in_device();
    const std::uint64_t begin = cpu_ns();
    for (unsigned i = 0; i < times; ++i) {
        store_to_trial_page();
    }
    const std::uint64_t all   = cpu_ns() - begin;
    const std::uint64_t watch = (time_in_device() - before).nanoseconds;
    trial_page                = nullptr;
    munmap(page, page_bytes);
    return static_cast<double>(all - watch) / times;
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
