#include "softhca_figures.h"

#include <algorithm>
#include <csignal>
#include <sys/mman.h>
#include <ucontext.h>

namespace ucxl::bench
{

namespace
{

double at(const std::vector<double>& sorted, double share)
{
    const auto index = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
    return sorted[std::min(index, sorted.size() - 1)];
}

} // namespace

percentiles percentiles_of(std::vector<double> samples)
{
    std::ranges::sort(samples);
    return {.p50   = at(samples, 0.5),
            .p90   = at(samples, 0.9),
            .p99   = at(samples, 0.99),
            .p999  = at(samples, 0.999),
            .worst = samples.back()};
}

percentiles latency_of(const std::function<void()>& once, std::size_t count)
{
    for (std::size_t i = 0; i < count / 20; ++i) {
        once();
    }
    std::vector<double> samples(count);
    for (double& sample : samples) {
        const std::uint64_t begin = now_ns();
        once();
        sample = static_cast<double>(now_ns() - begin) / 1000;
    }
    return percentiles_of(std::move(samples));
}

#if defined(__x86_64__)

namespace
{

constexpr greg_t store_bytes = 3; // of movq %rax, (%rdx)

void step_over(int, siginfo_t*, void* context)
{
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += store_bytes;
}

} // namespace

double bare_trap_us()
{
    constexpr std::size_t page_bytes = 4096;
    constexpr std::size_t samples    = 5000;
    void* const page                 = mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action          = {};
    struct sigaction before          = {};
    action.sa_sigaction              = step_over;
    action.sa_flags                  = SA_SIGINFO | SA_NODEFER;
    if (page == MAP_FAILED || sigaction(SIGSEGV, &action, &before) != 0) {
        return 0;
    }
    const auto trapping_store = [page] { asm volatile(".byte 0x48, 0x89, 0x02" : : "a"(1), "d"(page) : "memory"); };
    const double median       = latency_of(trapping_store, samples).p50;
    sigaction(SIGSEGV, &before, nullptr);
    munmap(page, page_bytes);
    return median;
}

#else

double bare_trap_us()
{
    return 0;
}

#endif

} // namespace ucxl::bench
