// The measurements of one method so far. Times are seconds per message.
#pragma once

#include "ticks.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ucxl::perf
{

// Counts tick intervals in classes of at most 0.4 % width. Any percentile is cheap, whatever the number of messages.
class tick_histogram
{
public:
    void add(std::uint64_t ticks) { ++_counts[index_of(ticks)]; }
    // The largest interval of the class that holds the rank; 0 if nothing was added.
    std::uint64_t percentile(double rank) const;

private:
    static constexpr unsigned precision_bits = 8;
    static constexpr std::size_t num_classes = (64 - precision_bits + 1) << precision_bits;

    static std::size_t index_of(std::uint64_t ticks);
    static std::uint64_t upper_end(std::size_t index);

    std::vector<std::uint64_t> _counts = std::vector<std::uint64_t>(num_classes);
};

double median(std::vector<double> values);

// How many of `total` messages are in that round. The last one takes the remainder.
constexpr std::uint64_t part_of_round(std::uint64_t total, std::uint64_t rounds, std::uint64_t round)
{
    const std::uint64_t each = total / rounds;
    return round + 1 < rounds ? each : total - each * (rounds - 1);
}

// ways: messages per measured interval (2 in a ping-pong).
class method_statistics
{
public:
    explicit method_statistics(double ways) : _ways(ways) {}

    // Call begin() before the messages of a round, and lap() after each of them.
    void begin()
    {
        _last  = ticks_now();
        _begin = _last;
    }
    void lap()
    {
        const std::uint64_t now = ticks_now();
        _histogram.add(now - _last);
        _last = now;
    }
    void end(std::uint64_t iterations);
    // A round whose messages were timed elsewhere.
    void add_round(std::span<const double> seconds);

    std::uint64_t iterations() const { return _iterations; }
    std::size_t rounds() const { return _rounds.size(); }
    double percentile(double rank) const;
    double average() const { return _seconds / static_cast<double>(_iterations) / _ways; }
    double median_of_rounds() const { return median(_rounds); }
    // For the last round alone.
    double last_round() const { return _rounds.back(); }
    // The median over the rounds of the speed relative to `other` in the same round (1: equally fast).
    double speed_against(const method_statistics& other) const;

private:
    double _ways;
    std::uint64_t _begin      = 0;
    std::uint64_t _last       = 0;
    std::uint64_t _iterations = 0;
    double _seconds           = 0;
    std::vector<double> _rounds;
    tick_histogram _histogram;
};

} // namespace ucxl::perf
