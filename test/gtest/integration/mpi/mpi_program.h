// What the test programs of MPI share: their place among the processes, which MPI runs them, and comparisons, which are
// counted.
#pragma once

#include <mpi.h>
#include <string>

namespace ucxl::test
{

extern int own_rank, num_ranks;
extern std::string current_call; // what is being done, for messages

void find_own_place();

// Which MPI runs the program: one with the standard ABI may be run by either. What one of them does wrong by itself is
// left out.
bool is_openmpi();
bool is_mpich();

// Prints the first few that are wrong.
void expect(bool is_right, const std::string& text);
// At the end of all processes: rank 0 prints "N comparisons, N wrong", of all. Returns the status of this process.
int report_comparisons();

} // namespace ucxl::test
