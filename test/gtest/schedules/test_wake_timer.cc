// The timer of the software device (src/softhca/shim/system/wake_timer.h), the real code, in orders of its atomic
// operations and system calls that random numbers choose: two threads ask for times, one of them ends the timer. The
// properties are those of test/models/wake_timer.pml.
#include "orders.h"
#include "scheduler.h"

#include "softhca/shim/system/libc_functions.h"
#include "softhca/shim/system/wake_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace ucxl::softhca
{

// What the timer takes from the table of the shim.
const libc_functions& libc()
{
    static const libc_functions table = [] {
        libc_functions made{};
        made.pthread_sigmask = pthread_sigmask;
        return made;
    }();
    return table;
}

} // namespace ucxl::softhca

namespace ucxl::test
{
namespace
{

constexpr pid_t process       = 100;
constexpr unsigned most_turns = 3;
constexpr unsigned latest     = 60;   // steps from now
constexpr unsigned far_later  = 6000; // the same, of one request of two in some orders
constexpr unsigned most_late  = 3000; // steps after its time; threads that go on for long take turns of hundreds
constexpr unsigned nearly_all = 10;   // of so many orders, all but one stop the timer while the other thread asks

class one_order : public checked_order
{
public:
    explicit one_order(std::uint64_t seed) : _random(seed), _all(seed + 1, scheduler::runs::fibers)
    {
        _stops   = !_random.one_in(nearly_all);
        _has_far = _random.one_in(8);
        for (auto& each : _called_by) {
            each.store(UINT64_MAX);
        }
        _all.add(process, [this] { ask(); });
        _all.add(process, [this] {
            ask();
            if (_stops) {
                stop();
            }
        });
    }

    const char* run()
    {
        _all.add(process, [this] {
            while (_num_over < 2) {
                scheduler::current()->yield();
            }
            stop(); // in any case
        });
        if (const char* const wrong = _all.run()) {
            _timer.forget(); // its thread was not one
            return _is_stopping ? wrong : "a time that was asked for never comes";
        }
        require(!_all.has_unjoined(), "a thread is made that nobody waits for");
        require(_num_calls <= _num_requests, "it is called more often than was asked");
        return fault();
    }
    unsigned num_calls() const { return _num_calls; }

private:
    static void called(void* order)
    {
        auto& own = *static_cast<one_order*>(order);
        own.require(!own._is_stopped, "it is called after the timer was stopped");
        const unsigned number = own._num_calls;
        if (number < own._called_by.size() && !own._is_stopping) {
            own.require(own._all.num_steps() <= own._called_by[number], "an earlier time that was asked for is lost");
        }
        ++own._num_calls;
        if (own._random.one_in(4)) { // as the device does, for what is due later
            own.ask_once();
        }
    }

    void ask_once()
    {
        ++_num_requests;
        const unsigned before = _num_calls;
        const auto time       = _all.num_steps() + _random.below(_has_far && _random.one_in(2) ? far_later : latest);
        _timer.wake_at(time);
        // A call that begins meanwhile may be the one that was asked for.
        if (before < _called_by.size() && before == _num_calls) {
            const std::uint64_t last = std::max(time, _all.num_steps()) + most_late;
            std::uint64_t known      = _called_by[before];
            while (last < known && !_called_by[before].compare_exchange_weak(known, last)) {
            }
        }
    }

    void ask()
    {
        for (std::uint64_t turns = _random.below(most_turns + 1); turns > 0; --turns) {
            const unsigned before = _num_calls;
            ask_once();
            while (_random.one_in(2) && _num_calls == before && !_is_stopping) {
                wait_for_call(before);
            }
        }
        ++_num_over;
    }

    void wait_for_call(unsigned before)
    {
        while (_num_calls == before && !_is_stopping) {
            scheduler::current()->yield();
        }
    }

    // One thread stops it, as in the program.
    void stop()
    {
        if (!_is_stopping.exchange(true)) {
            _timer.stop();
            _is_stopped = true;
        }
    }

    random _random;
    scheduler _all;
    softhca::wake_timer _timer{called, this};
    bool _stops = false, _has_far = false, _is_stopped = false;
    std::atomic<bool> _is_stopping{false};
    std::atomic<unsigned> _num_requests{0}, _num_calls{0}, _num_over{0};
    std::array<std::atomic<std::uint64_t>, 32> _called_by; // by its number: the step at which a call has to come
};

TEST(schedules, of_the_wake_timer_lose_no_time_and_end)
{
    try_orders<one_order>(20'000, 0.5, "the timer is called seldom",
                          [](const one_order& order) { return order.num_calls(); });
}

} // namespace
} // namespace ucxl::test
