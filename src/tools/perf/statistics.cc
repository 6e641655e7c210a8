#include "statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

namespace ucxl::perf
{

double seconds_per_tick()
{
    static const double value = [] {
        using clock               = std::chrono::steady_clock;
        const auto begin          = clock::now();
        const std::uint64_t first = ticks_now();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto end           = clock::now();
        const std::uint64_t last = ticks_now();
        return std::chrono::duration<double>(end - begin).count() / static_cast<double>(last - first);
    }();
    return value;
}

// Values below 2^precision_bits have a class each; above, a power of two is cut into 2^precision_bits classes.
std::size_t tick_histogram::index_of(std::uint64_t ticks)
{
    const unsigned width = static_cast<unsigned>(std::bit_width(ticks));
    if (width <= precision_bits) {
        return ticks;
    }
    const unsigned shift       = width - precision_bits - 1;
    const std::size_t fraction = (ticks >> shift) - (std::size_t{1} << precision_bits);
    return ((std::size_t{shift} + 1) << precision_bits) + fraction;
}

std::uint64_t tick_histogram::upper_end(std::size_t index)
{
    if (index < (std::size_t{1} << precision_bits)) {
        return index;
    }
    const unsigned shift      = static_cast<unsigned>(index >> precision_bits) - 1;
    const std::uint64_t low   = index & ((std::size_t{1} << precision_bits) - 1);
    const std::uint64_t start = low + (std::uint64_t{1} << precision_bits);
    return ((start + 1) << shift) - 1;
}

std::uint64_t tick_histogram::percentile(double rank) const
{
    const std::uint64_t total = std::accumulate(_counts.begin(), _counts.end(), std::uint64_t{0});
    const auto wanted         = static_cast<std::uint64_t>(std::ceil(static_cast<double>(total) * rank / 100));
    std::uint64_t seen        = 0;
    for (std::size_t i = 0; i < _counts.size(); ++i) {
        seen += _counts[i];
        if (_counts[i] != 0 && seen >= wanted) {
            return upper_end(i);
        }
    }
    return 0;
}

double median(std::vector<double> values)
{
    if (values.empty()) {
        return 0;
    }
    const std::size_t middle = values.size() / 2;
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
    if (values.size() % 2 == 1) {
        return values[middle];
    }
    return (values[middle] + *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle))) /
           2;
}

void method_statistics::end(std::uint64_t iterations)
{
    const double seconds = static_cast<double>(ticks_now() - _begin) * seconds_per_tick();
    _iterations += iterations;
    _seconds += seconds;
    _rounds.push_back(seconds / static_cast<double>(iterations) / _ways);
}

void method_statistics::add_round(std::span<const double> seconds)
{
    double sum = 0;
    for (const double each : seconds) {
        _histogram.add(static_cast<std::uint64_t>(each / seconds_per_tick()));
        sum += each;
    }
    _iterations += seconds.size();
    _seconds += sum;
    _rounds.push_back(sum / static_cast<double>(seconds.size()) / _ways);
}

double method_statistics::percentile(double rank) const
{
    return static_cast<double>(_histogram.percentile(rank)) * seconds_per_tick() / _ways;
}

double method_statistics::speed_against(const method_statistics& other) const
{
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(_rounds.size(), other._rounds.size()); ++i) {
        ratios.push_back(other._rounds[i] / _rounds[i]);
    }
    return median(std::move(ratios));
}

} // namespace ucxl::perf
