// A number in memory of two processes that one of them raises and the other one waits for. Zeroed memory is one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace ucxl::bench
{

// Two cache lines: processors fetch them in pairs.
struct alignas(128) counter {
    std::atomic<std::uint64_t> count;

    void set(std::uint64_t number) { count.store(number, std::memory_order_release); }

    // Returns what it has become.
    std::uint64_t wait_for(std::uint64_t number) const
    {
        constexpr unsigned most_polls = 10000; // some 100 us: the other process has no CPU, or waits for this one
        for (unsigned polls = 0;; ++polls) {
            const std::uint64_t seen = count.load(std::memory_order_acquire);
            if (seen >= number) {
                return seen;
            }
#ifdef __x86_64__
            __builtin_ia32_pause();
#endif
            if (polls > most_polls) {
                sched_yield();
            }
        }
    }
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace ucxl::bench
