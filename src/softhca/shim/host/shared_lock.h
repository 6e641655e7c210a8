// The lock of all shared state, in the shared memory itself. It survives its holders: when the thread that holds it
// dies, by any signal, the next one gets it and is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <pthread.h>

namespace ucxl::softhca
{

class shared_lock
{
public:
    // Called once, in zeroed memory, by the process that makes the fabric. Zero or an errno.
    int make();

    // True when the last holder died with the lock, or somebody left the repair to the next holder.
    bool lock();
    void unlock();

    // For a thread that has just unlocked and will lock again at once: gives a thread that sleeps for the lock time to
    // wake up and take it.
    void give_way();

    // For a holder that was told of a death and does not repair: the next one is told again.
    void owe_repair();

private:
    pthread_mutex_t _mutex;
    std::atomic<std::uint32_t> _repair_owed;
    std::atomic<std::uint32_t> _wanted; // a thread sleeps for the lock; not a count, because sleepers may die
};

} // namespace ucxl::softhca
