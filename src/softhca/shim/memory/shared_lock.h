// The lock of all shared state, in the memory that the processes share. It survives its holders: when the thread that
// has it ends, by whatever signal, the next one gets it and is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <pthread.h>

namespace ucxl::softhca
{

class shared_lock
{
public:
    // Once, in zeroed memory, by the process that makes the fabric. Zero or an errno.
    int make();

    // True where the last holder ended without giving it back, or somebody left the repair to us.
    bool lock();
    void unlock();

    // For one that has just unlocked and will lock again at once: where somebody sleeps for the lock, time to wake up
    // and take it.
    void give_way();

    // For a holder that was told and does not repair: the next one is told again.
    void owe_repair();

private:
    pthread_mutex_t _mutex;
    std::atomic<std::uint32_t> _repair_owed;
    std::atomic<std::uint32_t> _wanted; // somebody went to sleep for it; not a count, as sleepers may die
};

} // namespace ucxl::softhca
