// Verifies and times one pattern: windows, packing and put in alternating rounds, so that all of them see the same
// machine.
#pragma once

#include "examples/common/ucx_link.h"
#include "pattern.h"
#include "row.h"

namespace examples
{

struct measure_settings {
    unsigned rounds;        // of every method; the median is reported
    double seconds_a_round; // aimed at, by the number of iterations
};

// Both processes at the same time; the same result in both.
row measure(team& both, ucx_link& link, const pattern& what, const measure_settings& settings);

} // namespace examples
