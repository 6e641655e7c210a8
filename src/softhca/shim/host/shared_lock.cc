#include "shared_lock.h"

#include <cerrno>
#include <ctime>

namespace ucxl::softhca
{
namespace
{

// Most holds are shorter than a sleep and a wake-up: spin for about two microseconds first.
constexpr unsigned tries_before_sleep = 64;

constexpr long wake_up_ns = 20'000;

void pause_briefly()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

} // namespace

int shared_lock::make()
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    const int failed = pthread_mutex_init(&_mutex, &kind);
    pthread_mutexattr_destroy(&kind);
    _repair_owed.store(0);
    _wanted.store(0);
    return failed;
}

bool shared_lock::lock()
{
    int got = pthread_mutex_trylock(&_mutex);
    for (unsigned i = 0; got == EBUSY && i < tries_before_sleep; ++i) {
        pause_briefly();
        got = pthread_mutex_trylock(&_mutex);
    }
    if (got == EBUSY) {
        _wanted.store(1, std::memory_order_relaxed);
        got = pthread_mutex_lock(&_mutex);
    }
    if (got == EOWNERDEAD) {
        pthread_mutex_consistent(&_mutex);
        _repair_owed.store(0, std::memory_order_relaxed);
        return true;
    }
    return _repair_owed.load(std::memory_order_relaxed) != 0 && _repair_owed.exchange(0) != 0;
}

void shared_lock::unlock()
{
    pthread_mutex_unlock(&_mutex);
}

void shared_lock::give_way()
{
    if (_wanted.load(std::memory_order_relaxed) != 0 && _wanted.exchange(0) != 0) {
        const timespec briefly{.tv_sec = 0, .tv_nsec = wake_up_ns};
        ::nanosleep(&briefly, nullptr);
    }
}

void shared_lock::owe_repair()
{
    _repair_owed.store(1);
}

} // namespace ucxl::softhca
