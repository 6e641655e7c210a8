// What `bench mpi` moves: datatypes as applications make them, with MPI's own constructors.
//
// The first ones have the shapes of DDTBench (Schneider, Gerstenberger, Hoefler: Application-oriented ping-pong
// benchmarking, 2014): the same arrays, constructors and nesting, at one size each.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace ucxl::bench
{

struct pattern {
    std::string name;
    MPI_Datatype (*make)(); // committed
    const char* family;     // "nested" and "panel" rows have a goal of their own
};

const std::vector<pattern>& all_patterns();

} // namespace ucxl::bench
