#include "wake_timer.h"

#include "libc_functions.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <initializer_list>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

namespace ucxl::softhca
{
namespace
{

constexpr std::uint64_t second_ns = 1'000'000'000;

// The thread executes the model and its copies, not code of the program.
constexpr std::size_t stack_bytes = 256 * 1024;

std::uint32_t* word(std::atomic<std::uint32_t>& value)
{
    return reinterpret_cast<std::uint32_t*>(&value);
}

void sleep_until_changed(std::atomic<std::uint32_t>& value, std::uint32_t seen, std::uint64_t until_ns)
{
    const timespec until{.tv_sec  = static_cast<time_t>(until_ns / second_ns),
                         .tv_nsec = static_cast<long>(until_ns % second_ns)};
    // The bitset form takes an absolute time of the monotonic clock.
    syscall(SYS_futex, word(value), FUTEX_WAIT_BITSET_PRIVATE, seen, until_ns == UINT64_MAX ? nullptr : &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

} // namespace

std::uint64_t monotonic_ns()
{
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * second_ns + static_cast<std::uint64_t>(now.tv_nsec);
}

void wake_timer::start()
{
    if (_started.exchange(true)) {
        return;
    }
    // After the exchange: either this sees that the timer stops, or stop() sees that somebody makes the thread.
    if (_stopping.load()) {
        _started.store(false);
        return;
    }
    sigset_t most;
    sigset_t before;
    sigfillset(&most);
    for (const int fault : {SIGSEGV, SIGBUS, SIGTRAP, SIGFPE, SIGILL}) {
        sigdelset(&most, fault);
    }
    libc().pthread_sigmask(SIG_SETMASK, &most, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    const int failed = pthread_create(&_thread, &attributes, run, this);
    pthread_attr_destroy(&attributes);
    libc().pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) {
        _started.store(false); // tried again at the next request
    } else {
        _created.store(true);
    }
}

void wake_timer::wake_at(std::uint64_t time_ns)
{
    std::uint64_t due = _due.load();
    while (time_ns < due && !_due.compare_exchange_weak(due, time_ns)) {
    }
    if (time_ns >= due && _started.load()) {
        return; // a thread that could not be made for the earlier time is tried again
    }
    _changes.fetch_add(1);
    if (_started.load()) {
        syscall(SYS_futex, word(_changes), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    } else {
        start();
    }
}

void* wake_timer::run(void* timer)
{
    static_cast<wake_timer*>(timer)->loop();
    return nullptr;
}

void wake_timer::loop()
{
    pthread_setname_np(pthread_self(), "softhca");
    for (;;) {
        // Before all that the thread looks at: what changes afterwards lets it not sleep.
        const std::uint32_t seen = _changes.load();
        if (_stopping.load()) {
            break;
        }
        std::uint64_t due = _due.load();
        if (due == never || monotonic_ns() < due) {
            sleep_until_changed(_changes, seen, due);
            continue;
        }
        if (_due.compare_exchange_strong(due, never)) {
            _call(_argument);
        }
    }
}

void wake_timer::stop()
{
    if (_stopping.exchange(true)) {
        return;
    }
    while (_started.load() && !_created.load()) { // another thread is making it
        sched_yield();
    }
    if (!_created.load()) {
        return;
    }
    _changes.fetch_add(1);
    syscall(SYS_futex, word(_changes), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    pthread_join(_thread, nullptr);
    _created.store(false);
    _started.store(false);
}

} // namespace ucxl::softhca
