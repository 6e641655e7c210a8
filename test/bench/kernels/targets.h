// Each kernel library of this processor by itself, not only the one that plans choose: what `bench kernels --targets`
// prints, for the table of docs/processors.md.
#pragma once

namespace ucxl::bench
{

// Bytes moved per second by each library, in memory that the caches hold. `rounds` of about `sample_s` seconds each.
void print_targets(unsigned rounds, double sample_s);

} // namespace ucxl::bench
