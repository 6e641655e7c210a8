// Runs several threads of a protocol one at a time: a random number decides which one goes on, before each atomic
// operation and before some plain loads and stores. So an order of steps that fails is found again by its seed, and
// orders that a machine has once in a year come as often as others.
//
// Atomic stores that are not sequentially consistent stay for some steps in a buffer of their thread, as in processors
// of x86-64: the thread itself reads them there, the others later and in the same order. Processors that reorder more
// are not imitated.
//
// The code under test is not changed. It is compiled with -fsanitize=thread, so that the compiler calls a function for
// each atomic operation; atomic_operations.cc has these functions instead of the library of ThreadSanitizer. What the
// code asks of the system is in system_calls.cc.
//
// Example: scheduler all(seed, scheduler::runs::fibers); all.add(pid, [&] { one(); }); all.add(...); all.run();
#pragma once

#include "support/random.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>
#include <ucontext.h>

namespace ucxl::test
{

class scheduler
{
public:
    enum class runs : std::uint8_t {
        fibers,  // of one thread of the system: fast, and one may be killed
        threads, // with thread-local objects of their own
    };

    scheduler(std::uint64_t seed, runs kind);
    ~scheduler();
    scheduler(const scheduler&)            = delete;
    scheduler& operator=(const scheduler&) = delete;

    // A strand is a thread of the process `pid`. It must not throw. One that is killed is never unwound, so it owns no
    // memory. Returns its number.
    std::size_t add(pid_t pid, std::function<void()> body);
    // At some step of one of its fibers all fibers of the process stop for ever.
    void kill_somewhere(pid_t pid);
    // Until all strands have ended or were killed. Returns what is wrong, or null. Fibers that do not end stay where
    // they are; with threads that do not, which may have locks, the process ends.
    const char* run();

    // Of the strand that runs.
    pid_t running_process() const;
    bool is_dead(pid_t pid) const;
    // Threads that a strand makes and joins.
    std::size_t make(std::function<void()> body);
    void join(std::size_t strand);
    bool has_unjoined() const { return _num_unjoined > 0; }
    std::uint64_t num_steps() const { return _num_steps; }

    // That of the strand that calls, or null.
    static scheduler* current();
    // Before a step of the strand that runs.
    void step();
    // The same, of an atomic operation.
    void step_at(const volatile void* address, std::size_t length);
    // Before a plain load or store. Some of them are steps, too: what is between an atomic operation and its use.
    void access(const volatile void* address, std::size_t length);
    // The strand that runs cannot go on before others do.
    void yield();
    // Whether a compare-and-swap that may fail for no reason does so.
    bool fails_for_no_reason() { return _random.one_in(8); }
    // Whether a copy whose words may be read in any order begins with the last one.
    bool draws_reverse_order() { return _random.one_in(2); }

    // Stores of the strand that runs.
    void buffer_store(volatile void* address, std::uint64_t value, std::size_t length);
    // Makes what it has stored visible to all.
    void flush();
    // That of all strands, as the kernel's membarrier().
    void flush_all();
    // The value that the strand itself has stored there and others do not see yet, or null.
    const std::uint64_t* buffered(const volatile void* address) const;

    // Memory that a strand frees stays until the end, so that it is seen when a strand still uses it.
    void keep_freed(void* memory, std::size_t length);

    // Sleeps until woken by wake(word), or until num_steps() is `until`. Whoever calls compares the word before.
    void sleep_on(const void* word, std::uint64_t until);
    void wake(const void* word);

private:
    struct stored {
        volatile void* address;
        std::uint64_t value;
        std::size_t length;
    };

    struct strand {
        ucontext_t context;
        pthread_t thread{};
        sem_t turn;
        std::function<void()> body;
        pid_t pid;
        bool has_ended        = false;
        const void* sleeps_on = nullptr;
        std::deque<stored> buffer;
    };

    friend struct end_of_strand;
    static void run_fiber();
    static void* run_thread(void* strand);
    bool is_runnable(const strand& each) const { return !each.has_ended && each.pid != _killed; }
    bool is_over() const { return _num_steps > most_steps; }
    strand* choose(const strand* excluded);
    void count_step();
    void end_running();
    void go_on(const strand* excluded);
    void take_step();
    void flush(strand& owner);
    void look_for_freed(const volatile void* address, std::size_t length);
    void flush_if_touched(const volatile void* address, std::size_t length);
    void flush_oldest(strand& owner);

    static constexpr std::uint64_t most_steps = 200'000;
    static constexpr std::size_t most_strands = 16;

    const std::uint64_t _seed;
    random _random;
    const runs _kind;
    const std::uint64_t _steps_in_a_row; // of one strand, on average
    const std::uint64_t _steps_stored;   // of each strand, on average, while a store is in its buffer
    std::vector<std::unique_ptr<strand>> _strands;
    strand* _running = nullptr;
    ucontext_t _main;
    sem_t _main_turn;
    pid_t _victim = 0, _killed = 0;
    std::uint64_t _kill_at = 0, _num_steps = 0;
    std::size_t _num_unjoined = 0;
    std::map<std::uintptr_t, std::size_t> _freed; // address -> length
    bool _was_freed_used = false;
};

} // namespace ucxl::test
