#include "progress_thread.h"

#include "log.h"

#include <chrono>
#include <new>

namespace ucxl::nixl
{

namespace
{

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

struct pace {
    microseconds idle_since;
    microseconds pause;
};

// After so long without anything, so long a pause.
constexpr pace paces[] = {{microseconds(1'000'000), microseconds(1'000)},
                          {microseconds(10'000), microseconds(200)},
                          {microseconds(200), microseconds(50)}};

microseconds pause_after(clock::duration idle)
{
    for (const pace& each : paces) {
        if (idle >= each.idle_since) {
            return each.pause;
        }
    }
    return microseconds(0);
}

} // namespace

progress_thread::~progress_thread()
{
    if (!_worker.is_of_this_process()) {
        _thread.detach(); // a child of fork() has no such thread
        return;
    }
    _is_over.store(true, std::memory_order_relaxed);
    _thread.join();
}

bool progress_thread::make_progress() noexcept
{
    try {
        return _worker.progress();
    } catch (const std::bad_alloc&) {
        log_error("no memory to make progress");
        return false;
    }
}

void progress_thread::run()
{
    auto last_busy = clock::now();
    while (!_is_over.load(std::memory_order_relaxed)) {
        const bool is_busy = make_progress();
        const auto now     = clock::now();
        last_busy          = is_busy ? now : last_busy;
        const auto pause   = pause_after(now - last_busy);
        if (pause.count() != 0) {
            std::this_thread::sleep_for(pause);
        } else {
            std::this_thread::yield();
        }
    }
}

} // namespace ucxl::nixl
