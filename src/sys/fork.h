// Lets fork hold a lock, so that a child does not inherit it from a thread that it does not have. Fork takes the locks
// in the opposite order of these calls. A lock that is taken under others must come before them.
//
// A lock that others take under locks of theirs is registered when the library is loaded, by a constructor of priority
// 200; the next ones, which are taken under nothing else, by one of 201. What a child has to do before it writes to
// any memory, also to locks, is registered by one of 199.
//
// Example: hold_over_fork<[]() -> std::mutex& { return table::instance()._lock; }>(); // once, for ever
#pragma once

#include <mutex>

#include <pthread.h>

namespace ucxl
{

template <auto lock>
void hold_over_fork()
{
    pthread_atfork([] { lock().lock(); }, [] { lock().unlock(); }, [] { lock().unlock(); });
}

// The one object of its type, whose `lock` fork holds from the first call on. It is never destroyed: destructors that
// run later may use it.
template <typename Object>
Object& only_one_over_fork()
{
    static Object& only = *[] {
        auto* const made = new Object;
        hold_over_fork<[]() -> std::mutex& { return only_one_over_fork<Object>().lock; }>();
        return made;
    }();
    return only;
}

} // namespace ucxl
