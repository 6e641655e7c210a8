// Each kernel library of this processor by itself, not only the one that plans choose: what `bench kernels --targets`
// prints, for the table of docs/processors.md.
#pragma once

#include "bench/common/measure.h"

namespace ucxl::bench
{

// Bytes moved per second by each library, in memory that the caches hold.
void print_targets(const effort& how);

} // namespace ucxl::bench
