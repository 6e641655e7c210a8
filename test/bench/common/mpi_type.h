// A type tree as an MPI datatype.
#pragma once

#include "type_tree.h"

#define MPICH_SKIP_MPICXX
#define OMPI_SKIP_MPICXX
#include <mpi.h>

namespace ucxl::bench
{

// Committed; the caller frees it.
MPI_Datatype mpi_type_of(const type_tree& type);

} // namespace ucxl::bench
