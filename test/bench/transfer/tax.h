// What contiguous host memory between two processes pays for this library being loaded, which it does not use: the same
// program with and without it preloaded, measured in turn, by several pairs of process pairs.
#pragma once

#include "bench/common/row.h"

#include <string>
#include <vector>

namespace ucxl::bench
{

struct tax {
    std::vector<row> rows; // round i of one method was measured beside round i of the other
    // Of UCX's own tables of protocols and their limits (UCX_PROTO_INFO): how many, and those that only one side has.
    unsigned num_tables = 0;
    std::string differing_tables;
};

// Throws std::runtime_error.
tax measure_tax(const effort& how, unsigned num_pairs);

std::string tax_table(const tax& paid);
// The goal: the same protocols, and at most 20 ns more.
std::string judge(const tax& paid);

} // namespace ucxl::bench
