// What the code under test asks of the system, for strands of a scheduler; it is passed on for all others. Time is the
// number of steps.
#include "scheduler.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

using ucxl::test::scheduler;

// That of the C library.
template <typename Function>
Function* passed_on(Function*, const char* name)
{
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::uint64_t time_of(const timespec* until)
{
    constexpr std::uint64_t second = 1'000'000'000;
    return until == nullptr
               ? UINT64_MAX
               : static_cast<std::uint64_t>(until->tv_sec) * second + static_cast<std::uint64_t>(until->tv_nsec);
}

// The kernel compares and begins to sleep in one step.
long wait_for_word(scheduler& all, const std::uint32_t* word, std::uint32_t seen, std::uint64_t until)
{
    if (__atomic_load_n(word, __ATOMIC_RELAXED) != seen) {
        errno = EAGAIN;
        return -1;
    }
    all.sleep_on(word, until);
    return 0;
}

// Of those that wait for a word, all are woken, as the code under test asks for.
long futex(scheduler& all, const long (&arguments)[6])
{
    const auto* const word = reinterpret_cast<const std::uint32_t*>(arguments[0]);
    const auto seen        = static_cast<std::uint32_t>(arguments[2]);
    const auto* const time = reinterpret_cast<const timespec*>(arguments[3]);
    all.step();
    all.flush();
    switch (arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: // the language's, for static objects, without a time
        return wait_for_word(all, word, seen, UINT64_MAX);
    case FUTEX_WAIT_BITSET:
        return wait_for_word(all, word, seen, time_of(time));
    case FUTEX_WAKE:
        all.wake(word);
        return INT_MAX;
    default:
        std::abort(); // no code under test asks for it
    }
}

} // namespace

extern "C" int sched_yield() noexcept
{
    if (auto* const all = scheduler::current()) {
        all->yield();
        return 0;
    }
    static auto* const next = passed_on(sched_yield, "sched_yield");
    return next();
}

extern "C" int kill(pid_t pid, int number) noexcept
{
    if (const auto* const all = scheduler::current()) {
        errno = ESRCH;
        return all->is_dead(pid) ? -1 : 0;
    }
    static auto* const next = passed_on(kill, "kill");
    return next(pid, number);
}

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept
{
    if (const auto* const all = scheduler::current()) {
        *now = {.tv_sec = 0, .tv_nsec = static_cast<long>(all->num_steps())};
        return 0;
    }
    static auto* const next = passed_on(clock_gettime, "clock_gettime");
    return next(clock, now);
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
{
    if (auto* const all = scheduler::current()) {
        all->step();
        all->flush();
        while (pthread_mutex_trylock(mutex) != 0) {
            all->yield();
        }
        return 0;
    }
    static auto* const next = passed_on(pthread_mutex_lock, "pthread_mutex_lock");
    return next(mutex);
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
{
    if (auto* const all = scheduler::current()) {
        all->step();
        all->flush();
    }
    static auto* const next = passed_on(pthread_mutex_unlock, "pthread_mutex_unlock");
    return next(mutex);
}

extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept
{
    if (auto* const all = scheduler::current()) {
        all->step();
        all->flush();
        *made = all->make([=] { body(argument); });
        return 0;
    }
    static auto* const next = passed_on(pthread_create, "pthread_create");
    return next(made, attributes, body, argument);
}

extern "C" int pthread_join(pthread_t thread, void** result)
{
    if (auto* const all = scheduler::current()) {
        all->flush();
        all->join(thread);
        return 0;
    }
    static auto* const next = passed_on(pthread_join, "pthread_join");
    return next(thread, result);
}

// Writes word by word, as others may see it.
extern "C" ssize_t pwrite(int file, const void* from, std::size_t length, off_t offset)
{
    static auto* const next = passed_on(pwrite, "pwrite");
    auto* const all         = scheduler::current();
    if (all == nullptr) {
        return next(file, from, length, offset);
    }
    all->flush();
    std::size_t done = 0;
    while (done < length) {
        all->step();
        const std::size_t left = std::min(length - done, sizeof(std::uint64_t));
        if (next(file, static_cast<const std::byte*>(from) + done, left, offset + static_cast<off_t>(done)) < 0) {
            return -1;
        }
        done += left;
    }
    return static_cast<ssize_t>(done);
}

// And reads so, as a copy may: no order of its words is promised, so some are read from the end.
extern "C" ssize_t pread(int file, void* to, std::size_t length, off_t offset)
{
    static auto* const next = passed_on(pread, "pread");
    auto* const all         = scheduler::current();
    if (all == nullptr) {
        return next(file, to, length, offset);
    }
    constexpr std::size_t word = sizeof(std::uint64_t);
    const bool from_end        = all->draws_reverse_order();
    const std::size_t words    = (length + word - 1) / word;
    for (std::size_t done = 0; done < words; ++done) {
        const std::size_t at   = (from_end ? words - 1 - done : done) * word;
        const std::size_t part = std::min(length - at, word);
        all->step();
        const ssize_t count = next(file, static_cast<std::byte*>(to) + at, part, offset + static_cast<off_t>(at));
        if (count != static_cast<ssize_t>(part)) {
            return count; // the end of the file, which is none of these
        }
    }
    return static_cast<ssize_t>(length);
}

extern "C" long syscall(long number, ...) noexcept
{
    std::va_list list;
    va_start(list, number);
    long arguments[6];
    for (long& each : arguments) {
        each = va_arg(list, long);
    }
    va_end(list);
    auto* const all = scheduler::current();
    if (all != nullptr && number == SYS_membarrier) {
        all->step();
        if (arguments[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
            all->flush_all();
        }
        return 0;
    }
    if (all != nullptr && number == SYS_futex) {
        return futex(*all, arguments);
    }
    static auto* const next = passed_on(syscall, "syscall");
    return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
