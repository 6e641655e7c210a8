// Verifies and times one pattern. Windows, packing and put alternate in rounds, so that all see the same machine load.
#pragma once

#include "examples/common/ucx_link.h"
#include "pattern.h"
#include "row.h"

namespace examples
{

struct measure_settings {
    unsigned rounds;        // of every method; the report has their median
    double seconds_a_round; // target; it sets the number of iterations
};

// Both processes call it at the same time and get the same result.
row measure(team& both, ucx_link& link, const pattern& pattern, const measure_settings& settings);

} // namespace examples
