#include "scheduler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <signal.h>

namespace ucxl::test
{

namespace
{

scheduler* running = nullptr;

constexpr std::size_t stack_length   = 64 << 10;
constexpr std::uint64_t most_steps   = 200'000;
constexpr std::uint64_t likely_steps = 400; // a process is killed within these

// Each is used again and again.
std::byte* stack(std::size_t number)
{
    static std::vector<std::unique_ptr<std::byte[]>> all;
    while (all.size() <= number) {
        all.push_back(std::make_unique<std::byte[]>(stack_length));
    }
    return all[number].get();
}

} // namespace

scheduler* scheduler::current()
{
    return running;
}

// Some orders need a fiber that goes on for long while another one waits between two steps, others the contrary.
scheduler::scheduler(std::uint64_t seed) : _random(seed), _steps_in_a_row(std::uint64_t{2} << _random.below(6))
{
    running = this;
}

scheduler::~scheduler()
{
    running = nullptr;
}

void scheduler::start()
{
    running->_running->body();
    running->_running->has_ended = true;
    running->go_on();
}

void scheduler::add(pid_t pid, std::function<void()> body)
{
    auto& made = *_fibers.emplace_back(std::make_unique<fiber>());
    made.body  = std::move(body);
    made.pid   = pid;
    getcontext(&made.context);
    made.context.uc_stack = {.ss_sp = stack(_fibers.size() - 1), .ss_flags = 0, .ss_size = stack_length};
    made.context.uc_link  = nullptr;
    makecontext(&made.context, start, 0);
}

void scheduler::kill_somewhere(pid_t pid)
{
    _victim  = pid;
    _kill_at = 1 + _random.below(likely_steps);
}

scheduler::fiber* scheduler::choose()
{
    std::array<fiber*, 16> runnable;
    std::size_t count = 0;
    for (const auto& each : _fibers) {
        if (is_runnable(*each)) {
            runnable[count++] = each.get();
        }
    }
    return count == 0 ? nullptr : runnable[_random.below(count)];
}

// Switches to another fiber, or back to run().
void scheduler::go_on()
{
    fiber* const before = _running;
    _running            = _num_steps > most_steps ? nullptr : choose();
    if (_running != before) {
        swapcontext(&before->context, _running == nullptr ? &_main : &_running->context);
    }
}

void scheduler::step()
{
    if (_running == nullptr) {
        return; // what is done before and after
    }
    ++_num_steps;
    if (_victim != 0 && _num_steps >= _kill_at && _running->pid == _victim) {
        _killed = std::exchange(_victim, 0);
    }
    if (_killed == _running->pid || _num_steps > most_steps || _random.one_in(_steps_in_a_row)) {
        go_on();
    }
}

bool scheduler::run()
{
    _running = choose();
    if (_running != nullptr) {
        swapcontext(&_main, &_running->context);
    }
    return _num_steps <= most_steps;
}

pid_t scheduler::running_process() const
{
    return _running == nullptr ? 0 : _running->pid;
}

bool scheduler::is_dead(pid_t pid) const
{
    return _killed == pid;
}

} // namespace ucxl::test

namespace
{

void step()
{
    if (auto* const all = ucxl::test::scheduler::current()) {
        all->step();
    }
}

template <typename Word>
int compare_exchange(volatile Word* at, Word* expected, Word wanted, bool is_weak)
{
    step();
    auto* const all = ucxl::test::scheduler::current();
    if (*at != *expected || (is_weak && all != nullptr && all->fails_for_no_reason())) {
        *expected = *at;
        return 0;
    }
    *at = wanted;
    return 1;
}

} // namespace

// What the code under test asks of the system.
extern "C" int sched_yield() noexcept
{
    step();
    return 0;
}

extern "C" int kill(pid_t pid, int) noexcept
{
    const auto* const all = ucxl::test::scheduler::current();
    errno                 = ESRCH;
    return all != nullptr && all->is_dead(pid) ? -1 : 0;
}

// The functions that a compiler calls for -fsanitize=thread.
#define UCXL_ATOMICS(BITS)                                                                                             \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_load(const volatile std::uint##BITS##_t* at, int)             \
    {                                                                                                                  \
        step();                                                                                                        \
        return *at;                                                                                                    \
    }                                                                                                                  \
    extern "C" void __tsan_atomic##BITS##_store(volatile std::uint##BITS##_t* at, std::uint##BITS##_t value, int)      \
    {                                                                                                                  \
        step();                                                                                                        \
        *at = value;                                                                                                   \
    }                                                                                                                  \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_exchange(volatile std::uint##BITS##_t* at,                    \
                                                                  std::uint##BITS##_t value, int)                      \
    {                                                                                                                  \
        step();                                                                                                        \
        const auto before = *at;                                                                                       \
        *at               = value;                                                                                     \
        return before;                                                                                                 \
    }                                                                                                                  \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_fetch_add(volatile std::uint##BITS##_t* at,                   \
                                                                   std::uint##BITS##_t value, int)                     \
    {                                                                                                                  \
        step();                                                                                                        \
        const auto before = *at;                                                                                       \
        *at               = before + value;                                                                            \
        return before;                                                                                                 \
    }                                                                                                                  \
    extern "C" int __tsan_atomic##BITS##_compare_exchange_strong(                                                      \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t* expected, std::uint##BITS##_t wanted, int, int)         \
    {                                                                                                                  \
        return compare_exchange(at, expected, wanted, false);                                                          \
    }                                                                                                                  \
    extern "C" int __tsan_atomic##BITS##_compare_exchange_weak(                                                        \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t* expected, std::uint##BITS##_t wanted, int, int)         \
    {                                                                                                                  \
        return compare_exchange(at, expected, wanted, true);                                                           \
    }                                                                                                                  \
    /* clang's, for both */                                                                                            \
    extern "C" std::uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(                                         \
        volatile std::uint##BITS##_t* at, std::uint##BITS##_t expected, std::uint##BITS##_t wanted, int, int)          \
    {                                                                                                                  \
        compare_exchange(at, &expected, wanted, false);                                                                \
        return expected;                                                                                               \
    }

UCXL_ATOMICS(32)
UCXL_ATOMICS(64)
#undef UCXL_ATOMICS

extern "C" {
void __tsan_init()
{
}
void __tsan_func_entry(void*)
{
}
void __tsan_func_exit()
{
}
void __tsan_atomic_thread_fence(int)
{
}
}

// Other loads and stores: of memory that only one thread has.
#define UCXL_ACCESSES(BYTES)                                                                                           \
    extern "C" void __tsan_read##BYTES(void*)                                                                          \
    {                                                                                                                  \
    }                                                                                                                  \
    extern "C" void __tsan_write##BYTES(void*)                                                                         \
    {                                                                                                                  \
    }

UCXL_ACCESSES(1)
UCXL_ACCESSES(2)
UCXL_ACCESSES(4)
UCXL_ACCESSES(8)
UCXL_ACCESSES(16)
#undef UCXL_ACCESSES

// clang's.
extern "C" void* __tsan_memcpy(void* to, const void* from, std::size_t length)
{
    return std::memcpy(to, from, length);
}
extern "C" void* __tsan_memset(void* to, int value, std::size_t length)
{
    return std::memset(to, value, length);
}

extern "C" void __tsan_read_range(void*, std::size_t)
{
}
extern "C" void __tsan_write_range(void*, std::size_t)
{
}
