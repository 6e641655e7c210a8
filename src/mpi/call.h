// What the definitions of MPI's functions share.
#pragma once

#include "implementation.h"
#include "known_type.h"
#include "mpi_functions.h"
#include "type_table.h"

// Begins the definition of own_MPI_...(), which programs call by the name MPI_...().
#define UCXL_MPI_CALL extern "C" [[gnu::visibility("hidden")]] int

namespace ucxl::mpi
{

// MPICH copies messages within a communicator of one process by the CPU, which a window does not allow.
inline bool can_take_windows(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL) {
        return false;
    }
    if (implementation_below() == implementation::openmpi) {
        return true;
    }
    int size = 0;
    return PMPI_Comm_size(comm, &size) == MPI_SUCCESS && size > 1;
}

// Whether an error in this communicator, or this window, ends the job: so it does unless the program wants something
// else.
template <typename Handle>
bool errors_are_fatal(int (*get_handler)(Handle, MPI_Errhandler*), Handle handle)
{
    MPI_Errhandler handler{};
    if (get_handler(handle, &handler) != MPI_SUCCESS) {
        return false;
    }
    const bool are_fatal = handler == MPI_ERRORS_ARE_FATAL;
    PMPI_Errhandler_free(&handler);
    return are_fatal;
}

// A window over a buffer of a call that goes to this communicator, for a datatype that is not left to MPI; none if MPI
// shall move the buffer.
inline window_use borrow(const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm, direction way)
{
    known_type* const known = look_at(type, count);
    if (known == nullptr || !can_take_windows(comm)) {
        return {};
    }
    return known->borrow(buffer, count, way);
}

} // namespace ucxl::mpi
