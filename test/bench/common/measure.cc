#include "measure.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ucxl::bench
{

quartiles quartiles_of(std::vector<double> values)
{
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (values.empty()) {
        throw std::invalid_argument("no round was measured");
    }
    std::ranges::sort(values);
    const std::size_t num = values.size();
    return {values[(num - 1) / 4], values[num / 2], values[num * 3 / 4]};
}

double median(std::vector<double> values)
{
    return quartiles_of(std::move(values)).middle;
}

namespace
{

struct pace {
    unsigned times  = 1; // a sample
    unsigned rounds = 1;
};

pace pace_of(const effort& how, const contender& who)
{
    double once = who.seconds(1);
    if (once < how.most_time / 8) {
        once = std::min(once, who.seconds(1));
    }
    unsigned times = 1;
    double sample  = once;
    while (sample < how.sample_time / 4) {
        times *= 4;
        sample = who.seconds(times);
    }
    once            = sample / times;
    const auto most = static_cast<unsigned>(std::min(how.most_time / std::max(once, how.sample_time), 1e6));
    return {std::max(1u, static_cast<unsigned>(std::lround(how.sample_time / once))), std::clamp(most, 1u, how.rounds)};
}

} // namespace

quartiles ratios_between(const measured& of, const measured& to)
{
    std::vector<double> ratios;
    for (std::size_t round = 0; round < std::min(of.rounds.size(), to.rounds.size()); ++round) {
        const double time = of.rounds[round], base = to.rounds[round];
        ratios.push_back(time > 0 && base > 0 ? time / base : not_measured);
    }
    return quartiles_of(std::move(ratios));
}

double ratio_between(const measured& of, const measured& to)
{
    return ratios_between(of, to).middle;
}

namespace
{

void summarize(std::vector<measured>& results)
{
    for (measured& one : results) {
        one.time  = median(one.rounds);
        one.ratio = ratio_between(one, results[0]);
    }
}

} // namespace

void append_rounds(std::vector<measured>& results, const std::vector<measured>& again)
{
    if (!std::ranges::equal(results, again, {}, &measured::name, &measured::name)) {
        throw std::invalid_argument("rounds of other contenders");
    }
    std::size_t longest = 0;
    for (const measured& one : results) {
        longest = std::max(longest, one.rounds.size());
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::vector<double>& rounds = results[i].rounds;
        rounds.resize(longest, not_measured);
        rounds.insert(rounds.end(), again[i].rounds.begin(), again[i].rounds.end());
    }
    summarize(results);
}

std::vector<measured> alternate(const effort& how, const std::vector<contender>& contenders)
{
    std::vector<pace> paces;
    std::vector<measured> made;
    for (const contender& who : contenders) {
        paces.push_back(pace_of(how, who));
        made.push_back({.name = who.name});
    }
    // Every second time backwards: who moves the same memory as the one before has it in the caches.
    for (unsigned round = 0; round < paces[0].rounds; ++round) {
        for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
            const std::size_t i = round % 2 == 0 ? turn : contenders.size() - 1 - turn;
            if (round < paces[i].rounds) {
                made[i].rounds.push_back(contenders[i].seconds(paces[i].times) / paces[i].times);
            }
        }
    }
    summarize(made);
    return made;
}

std::vector<measured> alternate_calls(const effort& how, const std::vector<std::function<void()>>& calls)
{
    std::vector<contender> contenders;
    for (const auto& call : calls) {
        contenders.push_back({{}, [&call](unsigned times) { return seconds_of(times, call); }});
    }
    return alternate(how, contenders);
}

} // namespace ucxl::bench
