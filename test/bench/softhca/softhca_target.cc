#include "softhca_target.h"

#include <csignal>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::bench
{

using test::address;
using test::die;
using test::endpoint;

// How a target that does not read its pipe is told to.
struct target_process::shared_word {
    std::atomic<bool> leave = false;
};

namespace
{

constexpr std::size_t large_bytes = 8 << 20; // both buffers have that much

template <typename Value>
void put(int pipe, const Value& value)
{
    if (::write(pipe, &value, sizeof(value)) != sizeof(value)) {
        die("the pipe between the benchmark's processes broke");
    }
}

// False: the other end is closed.
template <typename Value>
bool get(int pipe, Value& value)
{
    const ssize_t got = ::read(pipe, &value, sizeof(value));
    if (got != 0 && got != sizeof(value)) {
        die("the pipe between the benchmark's processes broke");
    }
    return got != 0;
}

} // namespace

const char* name_of(target_state state)
{
    switch (state) {
    case target_state::asleep:
        return "asleep";
    case target_state::stopped:
        return "stopped";
    case target_state::computing:
        return "computing";
    case target_state::polling:
        return "polling";
    case target_state::writing:
        return "writing";
    }
    return "";
}

target_process::target_process(std::size_t buffer_bytes)
{
    void* const page = ::mmap(nullptr, sizeof(shared_word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || ::pipe(_to_target) != 0 || ::pipe(_from_target) != 0) {
        die("no memory or pipe for the target");
    }
    _word    = new (page) shared_word;
    _process = ::fork();
    if (_process < 0) {
        die("fork failed");
    }
    if (_process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL); // what computes does not notice that the pipe is closed
        ::close(_to_target[1]);
        ::close(_from_target[0]);
        serve(buffer_bytes);
    }
    ::close(_to_target[0]);
    ::close(_from_target[1]);
}

target_process::~target_process()
{
    enter(target_state::asleep);
    ::close(_to_target[1]);
    ::close(_from_target[0]);
    ::waitpid(_process, nullptr, 0);
    ::munmap(_word, sizeof(shared_word));
}

address target_process::connect(const address& own)
{
    put(_to_target[1], own);
    address found{};
    if (!get(_from_target[0], found)) {
        die("the target has ended");
    }
    return found;
}

void target_process::enter(target_state state)
{
    if (_stopped) {
        ::kill(_process, SIGCONT);
        _stopped = false;
    }
    _word->leave.store(true);
    put(_to_target[1], state);
    target_state now{};
    if (!get(_from_target[0], now)) {
        die("the target has ended");
    }
    if (state == target_state::stopped) {
        ::kill(_process, SIGSTOP);
        int status = 0;
        ::waitpid(_process, &status, WUNTRACED);
        _stopped = true;
    }
}

void target_process::serve(std::size_t buffer_bytes)
{
    {
        endpoint here(buffer_bytes);
        address peer{};
        if (!get(_to_target[0], peer)) {
            ::_exit(0);
        }
        here.connect(peer);
        put(_from_target[1], here.own());
        target_state state{};
        while (get(_to_target[0], state)) {
            _word->leave.store(false);
            put(_from_target[1], state);
            stay(here, state);
        }
    }
    ::_exit(0);
}

void target_process::stay(endpoint& here, target_state state)
{
    volatile std::uint64_t sum = 0;
    while (state == target_state::computing && !_word->leave.load(std::memory_order_relaxed)) {
        sum = sum + 1;
    }
    while (state == target_state::polling && !_word->leave.load(std::memory_order_relaxed)) {
        ibv_wc found{};
        if (ibv_poll_cq(here.queue(), 1, &found) != 0) {
            die("the target has a completion, which nothing should bring it");
        }
    }
    while (state == target_state::writing && !_word->leave.load(std::memory_order_relaxed)) {
        here.write(0, 0, large_bytes, 0);
        here.await_one();
    }
}

} // namespace ucxl::bench
