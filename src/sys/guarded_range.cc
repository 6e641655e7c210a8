#include "guarded_range.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <format>
#include <forward_list>
#include <mutex>

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

// The signal handler reads it without a lock. Free while both addresses are 0.
struct guarded_place {
    std::atomic<std::uint64_t> changes; // odd while it is being changed
    std::atomic<std::uintptr_t> start;
    std::atomic<std::uintptr_t> end;
    std::atomic<bool> is_cut;
};

namespace
{

constinit std::array<guarded_place, guarded_range::max_ranges> places{};

using action = struct sigaction;

// What was installed before.
constinit std::atomic<const action*> behind{nullptr};

std::mutex& installing()
{
    static std::mutex& lock = *new std::mutex;
    return lock;
}

// The instruction is repeated afterwards, and ends the process.
void end_with(int number)
{
    action usual{};
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, nullptr);
}

void pass_on(int number, siginfo_t* about, void* state)
{
    // Handlers that were installed behind each other in turn would call each other for ever. They hand on the signal
    // as it came, so that one that comes again is in a frame further down. A handler may also have jumped away: then
    // the next signal may be at the same address, but not in such a frame.
    static constinit thread_local const siginfo_t* last  = nullptr;
    static constinit thread_local const void* last_frame = nullptr;
    const void* const frame                              = __builtin_frame_address(0);
    const action* const next                             = behind.load(std::memory_order_acquire);
    if (next == nullptr || (about == last && frame < last_frame)) {
        end_with(number);
        return;
    }
    last       = about;
    last_frame = frame;
    if ((next->sa_flags & SA_SIGINFO) != 0) {
        next->sa_sigaction(number, about, state);
    } else if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN) {
        end_with(number);
    } else {
        next->sa_handler(number);
    }
    last = nullptr;
}

// By a system call: UCX watches mmap() by a handler of its own, which may take locks.
bool put_zeros(std::uintptr_t start, std::uintptr_t end)
{
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return syscall(SYS_mmap, start, end - start, PROT_READ | PROT_WRITE, flags, -1, 0) == static_cast<long>(start);
}

void on_bus_error(int number, siginfo_t* about, void* state)
{
    const int saved = errno;
    const auto at   = reinterpret_cast<std::uintptr_t>(about->si_addr);
    if (about->si_code == BUS_ADRERR) {
        for (guarded_place& each : places) {
            // The addresses of one range: with the end of the next one there, memory between them would be zeroed. The
            // range that is asked for does not change meanwhile, because it is in use.
            const std::uint64_t changes = each.changes.load(std::memory_order_acquire);
            const std::uintptr_t start  = each.start.load(std::memory_order_acquire);
            const std::uintptr_t end    = each.end.load(std::memory_order_acquire);
            const bool is_one           = changes % 2 == 0 && each.changes.load(std::memory_order_acquire) == changes;
            if (is_one && start <= at && at < end) {
                each.is_cut.store(true); // seen by everybody who sees the zeros
                if (put_zeros(start, end)) {
                    errno = saved;
                    return;
                }
            }
        }
    }
    errno = saved;
    pass_on(number, about, state);
}

// Under the lock. The only action of the list becomes one of those that stay for ever, each once: a handler may be
// reading them.
const action& keep(std::forward_list<action>& made)
{
    static auto& all = *new std::forward_list<action>;
    const auto known = std::ranges::find_if(all, [&](const action& each) {
        return each.sa_flags == made.front().sa_flags && each.sa_sigaction == made.front().sa_sigaction;
    });
    if (known != all.end()) {
        return *known;
    }
    all.splice_after(all.before_begin(), made);
    return all.front();
}

bool is_ours(const action& installed)
{
    return (installed.sa_flags & SA_SIGINFO) != 0 && installed.sa_sigaction == on_bus_error;
}

// Nothing can fail between the moment when ours is installed and that when it knows the one behind.
bool install()
{
    action now{};
    if (sigaction(SIGBUS, nullptr, &now) == 0 && is_ours(now)) [[likely]] {
        return true;
    }
    const std::lock_guard guard(installing());
    std::forward_list<action> before(1), replaced(1);
    if (sigaction(SIGBUS, nullptr, &before.front()) != 0) {
        return false;
    }
    if (is_ours(before.front())) {
        return true; // another thread was faster
    }
    behind.store(&keep(before), std::memory_order_release);
    action ours{};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags     = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(SIGBUS, &ours, &replaced.front()) != 0) {
        return false;
    }
    if (!is_ours(replaced.front())) { // the program may have installed another one meanwhile
        behind.store(&keep(replaced), std::memory_order_release);
    }
    return true;
}

} // namespace

result<guarded_range> guarded_range::create(std::byte* start, std::uint64_t length)
{
    if (!install()) {
        return fail_errno("a handler of SIGBUS");
    }
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    for (guarded_place& each : places) {
        std::uintptr_t free = 0;
        // Behind every address until the start is known: a free place holds none.
        if (each.end.load(std::memory_order_relaxed) == 0 && each.start.load(std::memory_order_relaxed) == 0 &&
            each.start.compare_exchange_strong(free, UINTPTR_MAX)) {
            each.changes.fetch_add(1);
            each.is_cut.store(false);
            each.end.store(first + length);
            each.start.store(first);
            each.changes.fetch_add(1);
            return guarded_range(each);
        }
    }
    return fail(errc::no_resource,
                std::format("{} mappings of files that may become shorter, the limit of a process", max_ranges));
}

guarded_range::~guarded_range()
{
    if (_place != nullptr) {
        _place->changes.fetch_add(1);
        _place->end.store(0);
        _place->changes.fetch_add(1);
        _place->start.store(0); // another one may take it now
    }
}

bool guarded_range::was_cut() const
{
    return _place->is_cut.load(std::memory_order_acquire);
}

void guarded_range::renew_handler() noexcept
{
    static_cast<void>(install());
    // The system ends a thread that blocks the signal of a fault of its own.
    sigset_t bus_error;
    sigemptyset(&bus_error);
    sigaddset(&bus_error, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr);
}

} // namespace ucxl
