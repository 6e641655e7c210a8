// UCX_LAYOUT_MPI_REPORT=y: a table of the datatypes that a process used, printed when MPI ends.
#pragma once

#include "known_type.h"

#include <vector>

namespace ucxl::mpi
{

class report
{
public:
    // A datatype that the program frees before MPI ends.
    static void note_end(known_type& type) noexcept;
    static void print(const std::vector<known_type*>& types);
};

} // namespace ucxl::mpi
