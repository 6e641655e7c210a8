#include "scheduler.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include <sched.h>

namespace ucxl::test
{

namespace
{

scheduler* only = nullptr;
// Other threads of the program are not scheduled; nor is the scheduler itself, which may call functions of templates
// that were compiled with the code under test.
thread_local constinit bool is_strand = false;

class in_scheduler
{
public:
    in_scheduler() { is_strand = false; }
    ~in_scheduler() { is_strand = true; }
    in_scheduler(const in_scheduler&)            = delete;
    in_scheduler& operator=(const in_scheduler&) = delete;
};

constexpr std::size_t stack_length        = 64 << 10;
constexpr std::uint64_t likely_steps      = 400; // a process is killed within these
constexpr std::uint64_t accesses_in_a_row = 16;  // plain ones, on average, without a step

// Each is used again and again.
std::byte* stack(std::size_t number)
{
    static std::vector<std::unique_ptr<std::byte[]>> all;
    while (all.size() <= number) {
        all.push_back(std::make_unique<std::byte[]>(stack_length));
    }
    return all[number].get();
}

void require_of_test(bool is_right, const char* fault)
{
    if (!is_right) {
        std::fprintf(stderr, "scheduler: %s\n", fault);
        std::_Exit(1);
    }
}

void wait_for(sem_t& turn)
{
    while (sem_wait(&turn) != 0) { // a signal
    }
}

// Only one thread runs at a time, and goes on faster where the one before ran.
void stay_on_one_processor()
{
    static const bool is_done = [] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
        return sched_setaffinity(0, sizeof(one), &one) == 0;
    }();
    static_cast<void>(is_done);
}

} // namespace

// The last that a thread does: thread-local objects take steps when they end, and so do destructors of other keys, in
// all rounds of these but the last one.
struct end_of_strand {
    static pthread_key_t key()
    {
        static const pthread_key_t only_one = [] {
            pthread_key_t made{};
            require_of_test(pthread_key_create(&made, end_round) == 0, "no key can be made");
            return made;
        }();
        return only_one;
    }
    static void set(std::uintptr_t rounds_left)
    {
        require_of_test(pthread_setspecific(key(), reinterpret_cast<void*>(rounds_left)) == 0, "a key cannot be set");
    }
    static void end_round(void* rounds_left)
    {
        if (const auto left = reinterpret_cast<std::uintptr_t>(rounds_left); left > 1) {
            set(left - 1);
            return;
        }
        is_strand = false;
        only->end_running();
    }
};

scheduler* scheduler::current()
{
    return is_strand ? only : nullptr;
}

// Some orders need a strand that goes on for long while another one waits between two steps, others the contrary. And
// some need a store that stays in its buffer while others take many steps.
scheduler::scheduler(std::uint64_t seed, runs kind)
    : _seed(seed), _random(seed), _kind(kind), _steps_in_a_row(std::uint64_t{2} << _random.below(6)),
      _steps_stored(std::uint64_t{2} << _random.below(6))
{
    only = this;
    sem_init(&_main_turn, 0, 0);
    if (kind == runs::threads) {
        stay_on_one_processor();
    }
}

scheduler::~scheduler()
{
    only = nullptr;
    for (const auto& [address, length] : _freed) {
        std::free(reinterpret_cast<void*>(address));
    }
}

void scheduler::run_fiber()
{
    is_strand = true;
    only->_running->body();
    is_strand = false;
    only->end_running();
}

void* scheduler::run_thread(void* own)
{
    end_of_strand::set(PTHREAD_DESTRUCTOR_ITERATIONS);
    auto& mine = *static_cast<strand*>(own);
    wait_for(mine.turn);
    is_strand = true;
    mine.body();
    return nullptr;
}

std::size_t scheduler::add(pid_t pid, std::function<void()> body)
{
    require_of_test(_strands.size() < most_strands, "more strands than a schedule may have");
    auto& made = *_strands.emplace_back(std::make_unique<strand>());
    made.body  = std::move(body);
    made.pid   = pid;
    if (_kind == runs::threads) {
        sem_init(&made.turn, 0, 0);
        require_of_test(pthread_create(&made.thread, nullptr, run_thread, &made) == 0, "no thread can be made");
    } else {
        getcontext(&made.context);
        made.context.uc_stack = {.ss_sp = stack(_strands.size() - 1), .ss_flags = 0, .ss_size = stack_length};
        made.context.uc_link  = nullptr;
        makecontext(&made.context, run_fiber, 0);
    }
    return _strands.size() - 1;
}

std::size_t scheduler::make(std::function<void()> body)
{
    const in_scheduler guard;
    ++_num_unjoined;
    return add(_running->pid, std::move(body));
}

void scheduler::join(std::size_t joined)
{
    while (!_strands[joined]->has_ended) {
        yield();
    }
    --_num_unjoined;
}

void scheduler::kill_somewhere(pid_t pid)
{
    _victim  = pid;
    _kill_at = 1 + _random.below(likely_steps);
}

// Null if there is none but that one.
scheduler::strand* scheduler::choose(const strand* excluded)
{
    std::array<strand*, most_strands> runnable;
    std::size_t count = 0;
    for (const auto& each : _strands) {
        if (is_runnable(*each) && each.get() != excluded) {
            runnable[count++] = each.get();
        }
    }
    return count == 0 ? nullptr : runnable[_random.below(count)];
}

// Switches to another strand, or back to run().
void scheduler::go_on(const strand* excluded)
{
    strand* const before = _running;
    strand* next         = is_over() ? nullptr : choose(excluded);
    if (next == nullptr && excluded != nullptr && is_runnable(*excluded) && !is_over()) {
        return; // it is alone
    }
    if (next == before) {
        return;
    }
    _running = next;
    if (_kind == runs::fibers) {
        swapcontext(&before->context, next == nullptr ? &_main : &next->context);
        return;
    }
    // Read before the next one runs, which may be the last.
    const bool has_ended = before->has_ended;
    sem_post(next == nullptr ? &_main_turn : &next->turn);
    if (!has_ended) {
        wait_for(before->turn);
    }
}

void scheduler::end_running()
{
    flush(*_running);
    _running->has_ended = true;
    go_on(nullptr);
}

void scheduler::count_step()
{
    ++_num_steps;
    if (_victim != 0 && _num_steps >= _kill_at && _running->pid == _victim) {
        _killed = std::exchange(_victim, 0);
        for (const auto& each : _strands) { // what a processor has stored does not end with a process
            if (each->pid == _killed) {
                flush(*each);
            }
        }
    }
    if (strand& any = *_strands[_random.below(_strands.size())]; !any.buffer.empty() && _random.one_in(_steps_stored)) {
        flush_oldest(any);
    }
}

void scheduler::take_step()
{
    count_step();
    if (_killed == _running->pid || is_over() || _random.one_in(_steps_in_a_row)) {
        go_on(nullptr);
    }
}

void scheduler::step()
{
    const in_scheduler guard;
    take_step();
}

void scheduler::step_at(const volatile void* address, std::size_t length)
{
    const in_scheduler guard;
    take_step();
    look_for_freed(address, length);
}

void scheduler::access(const volatile void* address, std::size_t length)
{
    const in_scheduler guard;
    if (_random.one_in(accesses_in_a_row)) {
        take_step();
    }
    look_for_freed(address, length);
    flush_if_touched(address, length);
}

void scheduler::yield()
{
    const in_scheduler guard;
    count_step();
    go_on(_running);
}

const char* scheduler::run()
{
    constexpr const char* never_ends = "somebody waits for ever";
    _running                         = choose(nullptr);
    if (_running != nullptr && _kind == runs::fibers) {
        swapcontext(&_main, &_running->context);
        is_strand = false; // a strand that never ends was left in the middle
    } else if (_running != nullptr) {
        sem_post(&_running->turn);
        wait_for(_main_turn);
        if (is_over()) {
            std::fprintf(stderr, "schedule %llu: %s\n", static_cast<unsigned long long>(_seed), never_ends);
            std::_Exit(1);
        }
        for (const auto& each : _strands) {
            pthread_join(each->thread, nullptr);
        }
    }
    return is_over() ? never_ends : _was_freed_used ? "memory is used that was freed" : nullptr;
}

pid_t scheduler::running_process() const
{
    return _running == nullptr ? 0 : _running->pid;
}

bool scheduler::is_dead(pid_t pid) const
{
    return _killed == pid;
}

void scheduler::flush_oldest(strand& owner)
{
    const stored oldest = owner.buffer.front();
    owner.buffer.pop_front();
    look_for_freed(oldest.address, oldest.length);
    std::memcpy(const_cast<void*>(oldest.address), &oldest.value, oldest.length); // little-endian
}

void scheduler::flush(strand& owner)
{
    while (!owner.buffer.empty()) {
        flush_oldest(owner);
    }
}

void scheduler::buffer_store(volatile void* address, std::uint64_t value, std::size_t length)
{
    const in_scheduler guard;
    _running->buffer.push_back({address, value, length});
}

void scheduler::flush()
{
    const in_scheduler guard;
    flush(*_running);
}

void scheduler::flush_if_touched(const volatile void* address, std::size_t length)
{
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    for (const stored& each : _running->buffer) {
        const auto other = reinterpret_cast<std::uintptr_t>(each.address);
        if (other < start + length && start < other + each.length) {
            flush(*_running);
            return;
        }
    }
}

void scheduler::flush_all()
{
    const in_scheduler guard;
    for (const auto& each : _strands) {
        flush(*each);
    }
}

const std::uint64_t* scheduler::buffered(const volatile void* address) const
{
    const in_scheduler guard;
    const auto newest = std::ranges::find(
        _running->buffer.rbegin(), _running->buffer.rend(), address,
        [](const stored& each) -> const volatile void* { return each.address; });
    return newest == _running->buffer.rend() ? nullptr : &newest->value;
}

void scheduler::keep_freed(void* memory, std::size_t length)
{
    const in_scheduler guard;
    flush_if_touched(memory, length); // what the strand itself stored there before is no mistake
    _was_freed_used = !_freed.emplace(reinterpret_cast<std::uintptr_t>(memory), length).second || _was_freed_used;
}

void scheduler::look_for_freed(const volatile void* address, std::size_t length)
{
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    const auto next  = _freed.upper_bound(start + length - 1);
    if (next != _freed.begin()) {
        const auto& [freed, freed_length] = *std::prev(next);
        _was_freed_used                   = _was_freed_used || start < freed + freed_length;
    }
}

void scheduler::sleep_on(const void* word, std::uint64_t until)
{
    _running->sleeps_on = word;
    strand& sleeper     = *_running;
    while (sleeper.sleeps_on != nullptr && _num_steps < until) {
        yield();
    }
    sleeper.sleeps_on = nullptr;
}

void scheduler::wake(const void* word)
{
    const in_scheduler guard;
    for (const auto& each : _strands) {
        if (each->sleeps_on == word) {
            each->sleeps_on = nullptr;
        }
    }
}

} // namespace ucxl::test
