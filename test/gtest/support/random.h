// Reproducible randomness: the same numbers from the same seed on every machine, other ones every day.
//
// Example: test::random random(test::run_seed()); ... random.below(10)
// Every test program prints its seed; UCXL_TEST_SEED gives it again.
#pragma once

#include <chrono>
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

// A sequence of its own for every part of a test, so that one part drawing more does not change the others.
inline std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t part)
{
    return random(seed ^ (0x9e3779b97f4a7c15u * (part + 1))).next();
}

// The seed of this run: UCXL_TEST_SEED, or the day in UTC with room for the numbers that a loop adds to it, so that no
// two days have one in common: 20261231000000.
inline std::uint64_t run_seed()
{
    static const std::uint64_t seed = [] {
        if (const char* const given = std::getenv("UCXL_TEST_SEED")) {
            return std::uint64_t{std::strtoull(given, nullptr, 0)};
        }
        const std::chrono::year_month_day today{
            std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
        const auto date = static_cast<unsigned>(static_cast<int>(today.year())) * 10000 +
                          static_cast<unsigned>(today.month()) * 100 + static_cast<unsigned>(today.day());
        return date * std::uint64_t{1'000'000};
    }();
    return seed;
}

} // namespace ucxl::test
