// The layout of MPI_Type_create_darray: the part of one process in an array that is distributed over a grid of
// processes.
#pragma once

#include "type_layout.h"

#include <vector>

namespace ucxl::mpi
{

// Integers: size, rank, ndims, gsizes, distribs, dargs, psizes, order, as MPI_Type_get_contents returns them.
type_layout_result distributed_array(const std::vector<MPI_Count>& integers, const type_layout_ptr& child);

} // namespace ucxl::mpi
