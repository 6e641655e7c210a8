// Things measured in turn, so that a slow moment of the machine hits all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ucxl::bench
{

struct contender {
    std::string name;
    std::function<double(unsigned times)> seconds; // of so many in sequence
};

struct effort {
    unsigned rounds    = 11;
    double sample_time = 3e-3; // seconds
    double most_time   = 0.5;  // of one contender; one that is slow has fewer rounds, one at least
};

struct measured {
    std::string name;
    double time  = 0;             // seconds, median
    double ratio = 0;             // to the first contender, median of rounds
    std::vector<double> rounds{}; // seconds
};

std::vector<measured> alternate(const effort& how, const std::vector<contender>& contenders);

double median(std::vector<double> of);

// Median of the rounds that both have had.
double ratio_between(const measured& of, const measured& to);

} // namespace ucxl::bench
