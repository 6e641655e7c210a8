#include "measure.h"

#include <algorithm>
#include <cmath>

namespace ucxl::bench
{

double median(std::vector<double> of)
{
    std::ranges::nth_element(of, of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2));
    return of[of.size() / 2];
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

double ratio_between(const measured& of, const measured& to)
{
    std::vector<double> ratios;
    for (std::size_t round = 0; round < std::min(of.rounds.size(), to.rounds.size()); ++round) {
        ratios.push_back(of.rounds[round] / to.rounds[round]);
    }
    return median(std::move(ratios));
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
    for (measured& one : made) {
        one.time  = median(one.rounds);
        one.ratio = ratio_between(one, made[0]);
    }
    return made;
}

} // namespace ucxl::bench
