// Runs several threads of a protocol as fibers of one thread: which one goes on is decided before each of its atomic
// operations, by a random number. So an order of steps that fails is found again by its seed, and orders that a machine
// has once in a year come as often as others. The order is one after the other (sequential consistency): what
// processors do beyond that is not seen here.
//
// The code under test is not changed. It is compiled with -fsanitize=thread, so that the compiler calls a function for
// each atomic operation; scheduler.cc has these functions instead of the library of ThreadSanitizer.
//
// Example: scheduler all(seed); all.add([&] { one(); }); all.add([&] { other(); }); all.run();
#pragma once

#include "support/random.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <sys/types.h>
#include <ucontext.h>

namespace ucxl::test
{

class scheduler
{
public:
    explicit scheduler(std::uint64_t seed);
    ~scheduler();
    scheduler(const scheduler&)            = delete;
    scheduler& operator=(const scheduler&) = delete;

    // A fiber of the process `pid`. It must not throw. One that is killed is never unwound, so it owns no memory.
    void add(pid_t pid, std::function<void()> body);
    // At some step of one of its fibers all fibers of the process stop for ever.
    void kill_somewhere(pid_t pid);
    // Until all fibers have ended or were killed. False: they did not within so many steps.
    bool run();

    // Of the fiber that runs.
    pid_t running_process() const;
    bool is_dead(pid_t pid) const;
    std::uint64_t num_steps() const { return _num_steps; }

    // The one that runs, or null.
    static scheduler* current();
    // Before a step of the fiber that runs.
    void step();
    // Whether a compare-and-swap that may fail for no reason does so.
    bool fails_for_no_reason() { return _random.one_in(8); }

private:
    struct fiber {
        ucontext_t context;
        std::function<void()> body;
        pid_t pid;
        bool has_ended = false;
    };

    static void start();
    bool is_runnable(const fiber& each) const { return !each.has_ended && each.pid != _killed; }
    fiber* choose();
    void go_on();

    random _random;
    const std::uint64_t _steps_in_a_row; // of one fiber, on average
    std::vector<std::unique_ptr<fiber>> _fibers;
    fiber* _running = nullptr;
    ucontext_t _main;
    pid_t _victim = 0, _killed = 0;
    std::uint64_t _kill_at = 0, _num_steps = 0;
};

} // namespace ucxl::test
