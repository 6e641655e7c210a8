// A round of the soak that is a job of MPI: an unmodified program with the library preloaded. It compares each of its
// calls with what MPI itself does. One of its processes may be killed; MPI then ends the job.
#pragma once

#include "director.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ucxl::soak
{

struct mpi_kill {
    unsigned victim   = 0; // by the order of the process numbers
    unsigned delay_ms = 0; // from when all have started
};

struct mpi_plan {
    std::uint64_t seed     = 0; // of the program's datatypes, too
    bool is_mpich          = false;
    unsigned num_processes = 2;
    bool has_heap          = false;
    test::environment options{};
    std::optional<mpi_kill> killed{};

    std::string text() const; // one line
};

// Empty if the round of this seed is none of MPI, as where no MPI is installed.
std::optional<mpi_plan> mpi_plan_of(std::uint64_t seed);
outcome run(const mpi_plan& plan);

} // namespace ucxl::soak
