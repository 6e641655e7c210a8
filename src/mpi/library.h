// Whether this library does anything in this process, and what it needs of MPI: from MPI_Init to MPI_Finalize, or from
// the first session to the last one.
//
// It is active if the MPI below moves messages by UCX and UCX knows windows. Otherwise no datatype is ever known
// (type_table.h), and every call goes to MPI as it is.
#pragma once

#include "known_type.h"
#include "mpi_functions.h"

#include <ucp/api/ucp.h>

namespace ucxl::mpi
{

// For attributes of this library: a copy of a datatype, a communicator or a window has nothing of ours.
template <typename Handle>
int copy_none(Handle /*copied_from*/, int /*keyval*/, void* /*extra*/, void* /*value*/, void* /*copied*/, int* has_copy)
{
    *has_copy = 0;
    return MPI_SUCCESS;
}

class library
{
public:
    // Before MPI starts: what it reads from the environment. False if the library stays out of this process.
    static bool prepare();
    // After MPI has started, if the library has not stayed out.
    static void start();
    // Before MPI ends: gives back all that is MPI's or UCX's.
    static void stop();

    static bool is_active();
    // Whether there are MPI_COMM_WORLD and MPI_COMM_SELF: not in a program that has sessions only.
    static bool has_world();
    // A program copied this datatype, which may not be committed.
    static void note_copy(MPI_Datatype type, MPI_Datatype copy);
    // Whether network cards carry windows in MPI's UCX.
    static bool has_cards();
    // The context of MPI's own UCX where network cards carry windows, so that it is decided for each window who does.
    // Otherwise null, and with MPI_THREAD_MULTIPLE: MPI does not let others use its context at the same time.
    static ucp_context_h context_of_windows();
    // Whether a window may stay mapped while no transfer uses it. One with hardware keys may not: the application is
    // free to release the memory below.
    static bool keeps_idle_windows() { return !has_cards(); }
};

} // namespace ucxl::mpi
