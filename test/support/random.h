// Reproducible randomness: the same numbers from the same seed on every machine.
//
// Example: test::random random = test::seeded("walk"); ... random.below(10)
// The seed is printed when the test fails (SCOPED_TRACE) and taken from UCXL_TEST_SEED if that is set.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>

namespace ucxl::test
{

class random
{
public:
    explicit random(std::uint64_t seed) : _state(seed) {}

    // splitmix64
    std::uint64_t next()
    {
        std::uint64_t value = _state += 0x9e3779b97f4a7c15u;
        value               = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
        value               = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
        return value ^ (value >> 31);
    }
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    // min and max included
    std::int64_t between(std::int64_t min, std::int64_t max)
    {
        return min + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(max - min) + 1));
    }
    bool one_in(std::uint64_t times) { return below(times) == 0; }
    template <typename List>
    void shuffle(List& list)
    {
        for (std::size_t i = list.size(); i > 1; --i) {
            std::swap(list[i - 1], list[below(i)]);
        }
    }

private:
    std::uint64_t _state;
};

// The seed of this run: UCXL_TEST_SEED, or 1. Say it in the message of every randomised check.
inline std::uint64_t run_seed()
{
    const char* text = std::getenv("UCXL_TEST_SEED");
    return text == nullptr ? 1 : std::strtoull(text, nullptr, 0);
}

} // namespace ucxl::test
