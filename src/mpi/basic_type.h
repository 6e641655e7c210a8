// The one datatype of MPI itself that a derived datatype consists of, and in whose elements its packed bytes are
// counted.
#pragma once

#include "mpi_functions.h"

namespace ucxl::mpi
{

// MPI_DATATYPE_NULL if it consists of several, or of one with gaps. May throw std::bad_alloc.
MPI_Datatype basic_type_of(MPI_Datatype type);

} // namespace ucxl::mpi
