// UCX_LAYOUT_MPI_STATUS=y: one line for a job, by its first process, that says what is active or why not.
#pragma once

namespace ucxl::mpi
{

class status
{
public:
    // MPI has started, and datatypes are taken.
    static void print_active() noexcept;
    // All is left to MPI.
    static void print_nothing(const char* reason) noexcept;
};

} // namespace ucxl::mpi
