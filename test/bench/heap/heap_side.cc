// One program with much work for malloc, of several kinds. It knows nothing of the heap, which the benchmark preloads.
//
// usage: bench_heap_side WORK; prints the seconds that it took
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr std::size_t kb = 1024, mb = 1024 * kb;

// The same numbers in every run: sides are compared.
class numbers
{
public:
    explicit numbers(std::uint64_t seed) : _state(seed * 2 + 1) {}
    std::uint64_t below(std::uint64_t limit)
    {
        _state = _state * 6364136223846793005u + 1442695040888963407u;
        return (_state >> 33) % limit;
    }

private:
    std::uint64_t _state;
};

struct freed {
    void operator()(char* memory) const { std::free(memory); }
};
using block = std::unique_ptr<char, freed>;

volatile char sink;

block allocate(std::size_t length)
{
    block made(static_cast<char*>(std::malloc(length)));
    if (made == nullptr) {
        std::abort();
    }
    return made;
}

void touch(volatile char* memory, std::size_t length)
{
    for (std::size_t i = 0; i < length; i += 4 * kb) {
        memory[i] = 1;
    }
}

// A set of live blocks, of which a random one is replaced at each step.
void replace(unsigned live, unsigned steps, std::uint64_t seed, std::size_t (*length)(numbers&))
{
    numbers random(seed);
    std::vector<block> all(live);
    for (unsigned step = 0; step < steps; ++step) {
        const std::size_t bytes = length(random);
        block& place            = all[random.below(live)];
        place.reset();
        place = allocate(bytes);
        std::memset(place.get(), 1, bytes);
    }
}

std::size_t small(numbers& random)
{
    return 8 + random.below(random.below(8) == 0 ? 4000 : 200);
}
// 64 B to 4 MB, each power of two as often.
std::size_t of_all_lengths(numbers& random)
{
    const std::size_t power = std::size_t{64} << random.below(16);
    return power + random.below(power);
}
std::size_t large(numbers& random)
{
    return 128 * kb + random.below(4 * mb);
}

void strings_in_a_map()
{
    std::map<std::string, std::string> all;
    numbers random(7);
    for (unsigned i = 0; i < 400000; ++i) {
        all["key " + std::to_string(random.below(100000)) + " of this map"] = std::string(random.below(100), 'x');
    }
}

// As array languages do: each expression has an array for its result.
void temporaries(std::size_t length, unsigned number)
{
    block sum = allocate(length);
    std::memset(sum.get(), 0, length);
    for (unsigned i = 0; i < number; ++i) {
        block next = allocate(length);
        for (std::size_t k = 0; k < length; ++k) {
            next.get()[k] = static_cast<char>(sum.get()[k] + 1);
        }
        sum = std::move(next);
    }
    sink = sum.get()[length / 2];
}

void first_touch()
{
    const std::size_t length = 768 * mb;
    const block all          = allocate(length);
    touch(all.get(), length);
}

void sparse_tables()
{
    for (unsigned i = 0; i < 4000; ++i) {
        const block table(static_cast<char*>(std::calloc(8 * mb, 1)));
        for (std::size_t k = 0; k < 8 * mb; k += mb) {
            table.get()[k] = 1;
        }
    }
}

void grow_by_realloc(std::size_t last, std::size_t step, unsigned times)
{
    for (unsigned i = 0; i < times; ++i) {
        char* memory       = nullptr;
        std::size_t length = 0;
        while (length < last) {
            const std::size_t longer = length + (step != 0 ? step : length / 2 + 64 * kb);
            memory                   = static_cast<char*>(std::realloc(memory, longer));
            touch(memory + length, longer - length);
            length = longer;
        }
        std::free(memory);
    }
}

void grow_a_vector()
{
    for (unsigned i = 0; i < 8; ++i) {
        std::vector<std::uint64_t> all;
        for (std::uint64_t k = 0; k < 8 * mb; ++k) {
            all.push_back(k);
        }
        sink = static_cast<char>(all.back());
    }
}

template <typename Work>
void in_two_threads(Work&& work)
{
    std::thread other([&] { work(1); });
    work(2);
    other.join();
}

void fork_children()
{
    const std::size_t length = 128 * mb;
    const block all          = allocate(length);
    touch(all.get(), length);
    for (unsigned i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(all.get()[4 * kb] == 1 ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status != 0) {
            std::abort();
        }
    }
}

struct work {
    std::string_view name;
    void (*run)();
};

constexpr work all_work[] = {
    {"small", [] { replace(100000, 2000000, 1, small); }},
    {"small, 2 threads", [] { in_two_threads([](unsigned seed) { replace(50000, 1500000, seed, small); }); }},
    {"strings in a map", strings_in_a_map},
    {"64 B to 8 MB", [] { replace(200, 12000, 2, of_all_lengths); }},
    {"large", [] { replace(32, 1500, 3, large); }},
    {"large, 2 threads", [] { in_two_threads([](unsigned seed) { replace(16, 1000, seed, large); }); }},
    {"temporaries of 1 MB", [] { temporaries(mb, 2000); }},
    {"temporaries of 64 MB", [] { temporaries(64 * mb, 12); }},
    {"first touch of 768 MB", first_touch},
    {"sparse tables of 8 MB", sparse_tables},
    {"realloc, half more", [] { grow_by_realloc(256 * mb, 0, 4); }},
    {"realloc, 64 KB more", [] { grow_by_realloc(64 * mb, 64 * kb, 4); }},
    {"a vector of 64 MB", grow_a_vector},
    {"fork with 128 MB", fork_children},
};

} // namespace

int main(int argc, char** argv)
{
    for (const work& each : all_work) {
        if (argc < 2) {
            std::printf("%s\n", each.name.data());
        } else if (each.name == argv[1]) {
            const auto start = std::chrono::steady_clock::now();
            each.run();
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            std::printf("%.6f\n", took.count());
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
