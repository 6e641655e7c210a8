// Things measured in turn, so that a slow moment of the machine hits all of them.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace ucxl::bench
{

template <typename Fn>
double seconds_of(unsigned times, Fn&& once)
{
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < times; ++i) {
        once();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct contender {
    std::string name;
    std::function<double(unsigned times)> seconds; // of so many in sequence
};

inline constexpr double no_limit = std::numeric_limits<double>::infinity();

struct effort {
    unsigned rounds    = 11;
    double sample_time = 3e-3; // seconds
    double most_time   = 0.5;  // of one contender; one that is slow has fewer rounds, one at least
};

struct measured {
    std::string name;
    double time  = 0;             // seconds, median
    double ratio = 0;             // to the first contender, median of rounds
    std::vector<double> rounds{}; // seconds; not_measured where it sat a round out
};

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

std::vector<measured> alternate(const effort& how, const std::vector<contender>& contenders);
// The same of calls, in their order.
std::vector<measured> alternate_calls(const effort& how, const std::vector<std::function<void()>>& calls);

// More rounds of the same contenders; their round i stays beside the others' round i. `again` has the same names in
// the same order, otherwise throws std::invalid_argument.
void append_rounds(std::vector<measured>& results, const std::vector<measured>& again);

// Nearest ranks: each of them is one of the values. Of the middle two the upper one is the median.
struct quartiles {
    double low, middle, high;
};

// Of the finite ones of these. Throws std::invalid_argument when there are none.
quartiles quartiles_of(std::vector<double> values);
double median(std::vector<double> values);

// Of the rounds that both have had, with times above zero. Throws std::invalid_argument when there are none.
quartiles ratios_between(const measured& of, const measured& to);
// Their median.
double ratio_between(const measured& of, const measured& to);

} // namespace ucxl::bench
