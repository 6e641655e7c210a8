#include "streaming_limit.h"

#include "kernels.h"
#include "stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ucxl
{

namespace
{

// The limit of two machines with second-level caches of 1 and 2 MB.
constexpr std::uint64_t usual_limit = std::uint64_t{8} << 20;

// Moving so much takes some hundred times as long as measuring.
constexpr std::uint64_t enough_to_measure = std::uint64_t{16} << 30;

constinit std::atomic<std::uint64_t> known_limit{0}; // 0: not known
constinit std::atomic<std::uint64_t> moved_so_far{0};

// A lock would hang a child forked during the measurement: it waits for a thread that the child lacks.
constinit std::atomic<bool> is_measured{false};

struct freed {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using measured_memory = std::unique_ptr<std::byte[], freed>;

// Touches all pages. Returns null without memory.
measured_memory allocate(std::uint64_t length)
{
    constexpr std::size_t page = 4096;
    measured_memory memory(static_cast<std::byte*>(std::aligned_alloc(page, length)));
    if (memory != nullptr) {
        std::memset(memory.get(), 1, length);
    }
    return memory;
}

[[gnu::noinline]] std::uint64_t read_all(const std::byte* memory, std::uint64_t length)
{
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < length; i += sizeof(std::uint64_t)) {
        std::uint64_t word;
        std::memcpy(&word, memory + i, sizeof(word));
        sum += word;
    }
    return sum;
}

template <typename Copy>
double seconds_of(Copy&& copy, const std::byte* to, std::uint64_t length)
{
    const auto begin = std::chrono::steady_clock::now();
    copy();
    const volatile std::uint64_t sum = read_all(to, length);
    (void)sum;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Compares the better of two rounds each, because other work on the machine only ever slows a round down.
bool pays(std::byte* to, const std::byte* from, std::uint64_t length)
{
    constexpr int rounds   = 2;
    const auto past_caches = [=] {
        best_kernels().streaming->copy(to, from, length);
        finish_streaming();
    };
    const auto into_caches = [=] { std::memcpy(to, from, length); };
    double past = std::numeric_limits<double>::max(), into = past;
    for (int i = 0; i < rounds; ++i) {
        past = std::min(past, seconds_of(past_caches, to, length));
        into = std::min(into, seconds_of(into_caches, to, length));
    }
    return past <= into;
}

} // namespace

std::uint64_t measure_streaming_limit()
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    return no_streaming; // this CPU has no kernels for it
#endif
    constexpr unsigned steps = 4;
    static_assert(min_measured_limit << (steps - 1) == max_measured_limit);
    measured_memory to, from;
    std::uint64_t length = 0;
    unsigned low = 0, high = steps; // it pays from step `high` on, and not below step `low`
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        const auto tried      = min_measured_limit << middle;
        if (tried > length) {
            to     = allocate(tried);
            from   = allocate(tried);
            length = tried;
        }
        if (to == nullptr || from == nullptr) {
            return usual_limit;
        }
        if (pays(to.get(), from.get(), tried)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high == steps ? no_streaming : min_measured_limit << high;
}

std::uint64_t streaming_limit()
{
    const std::uint64_t limit = known_limit.load(std::memory_order_relaxed);
    return limit != 0 ? limit : usual_limit;
}

void note_large_move(std::uint64_t length)
{
    if (known_limit.load(std::memory_order_relaxed) != 0) {
        return;
    }
    // What threads add at the same time may get lost: how much is enough need not be exact.
    const std::uint64_t moved = moved_so_far.load(std::memory_order_relaxed) + length;
    moved_so_far.store(moved, std::memory_order_relaxed);
    if (moved < enough_to_measure || is_measured.exchange(true, std::memory_order_relaxed)) {
        return;
    }
    std::uint64_t set = 0;
    known_limit.compare_exchange_strong(set, measure_streaming_limit(), std::memory_order_relaxed);
}

void set_streaming_limit(std::uint64_t bytes)
{
    known_limit.store(std::max<std::uint64_t>(bytes, 1), std::memory_order_relaxed);
}

std::uint64_t least_streaming_limit()
{
    const std::uint64_t limit = known_limit.load(std::memory_order_relaxed);
    return limit != 0 ? limit : min_measured_limit;
}

} // namespace ucxl
