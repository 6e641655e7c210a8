// Calls a function at a given time, in a thread of its own that is started when it is first needed. The thread blocks
// the program's signals. The steps are those of test/models/wake_timer.pml.
#pragma once

#include <atomic>
#include <cstdint>
#include <pthread.h>

namespace ucxl::softhca
{

class wake_timer
{
public:
    using function = void (*)(void* argument);

    wake_timer(function call, void* argument) : _call(call), _argument(argument) {}
    ~wake_timer() { stop(); }
    wake_timer(const wake_timer&)            = delete;
    wake_timer& operator=(const wake_timer&) = delete;

    // The function is called once at that time of the monotonic clock, or soon after. The earliest requested time
    // counts. May be called from any thread, and from the function itself.
    void wake_at(std::uint64_t time_ns);

    // Ends the thread. Afterwards the function does not run and is never called again.
    void stop();

    // In a child of fork(), which does not have the thread.
    void forget()
    {
        _created.store(false);
        _started.store(false);
    }

private:
    static void* run(void* timer);
    void loop();
    void start();

    static constexpr std::uint64_t never = UINT64_MAX;

    function _call;
    void* _argument;
    std::atomic<std::uint64_t> _due     = never;
    std::atomic<std::uint32_t> _changes = 0;     // the futex that the thread sleeps on
    std::atomic<bool> _started          = false; // somebody makes the thread, or has made it
    std::atomic<bool> _created          = false; // _thread is one
    std::atomic<bool> _stopping         = false;
    pthread_t _thread{};
};

std::uint64_t monotonic_ns();

} // namespace ucxl::softhca
