// The start and the end of MPI, and the datatypes that programs commit in between.
#include "call.h"
#include "library.h"
#include "settings.h"

#include <mutex>

namespace
{

using namespace ucxl::mpi;

// A program may start MPI as a whole and, also instead of that, by sessions. The library is there from the first of
// these until the last one has ended.
std::mutex lock;
unsigned num_users = 0;

template <typename Start>
int start_mpi(Start&& begin)
{
    const std::lock_guard guard(lock);
    if (num_users > 0) {
        const int result = begin();
        num_users += result == MPI_SUCCESS ? 1 : 0;
        return result;
    }
    library::prepare();
    int result = MPI_SUCCESS;
    {
        const hidden_options hidden;
        result = begin();
    }
    if (result == MPI_SUCCESS) {
        ++num_users;
        library::start();
    }
    return result;
}

template <typename End>
int end_mpi(End&& end)
{
    {
        const std::lock_guard guard(lock);
        if (num_users > 0 && --num_users == 0) {
            library::stop();
        }
    }
    return end();
}

} // namespace

UCXL_MPI_CALL MPI_Init(int* argc, char*** argv)
{
    return start_mpi([&] { return PMPI_Init(argc, argv); });
}

UCXL_MPI_CALL MPI_Init_thread(int* argc, char*** argv, int required, int* provided)
{
    return start_mpi([&] { return PMPI_Init_thread(argc, argv, required, provided); });
}

UCXL_MPI_CALL MPI_Finalize()
{
    return end_mpi([] { return PMPI_Finalize(); });
}

UCXL_MPI_CALL MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session)
{
    return start_mpi([&] { return PMPI_Session_init(info, handler, session); });
}

UCXL_MPI_CALL MPI_Session_finalize(MPI_Session* session)
{
    return end_mpi([&] { return PMPI_Session_finalize(session); });
}

UCXL_MPI_CALL MPI_Type_commit(MPI_Datatype* type)
{
    const int result = PMPI_Type_commit(type);
    if (result == MPI_SUCCESS) {
        library::learn(*type);
    }
    return result;
}

// The copy of a committed datatype is committed.
UCXL_MPI_CALL MPI_Type_dup(MPI_Datatype type, MPI_Datatype* copy)
{
    const int result = PMPI_Type_dup(type, copy);
    if (result == MPI_SUCCESS && find_known(type) != nullptr) {
        library::learn(*copy);
    }
    return result;
}
