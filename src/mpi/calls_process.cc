// The start and the end of MPI, and the datatypes that programs commit in between.
#include "call.h"
#include "library.h"
#include "settings.h"

namespace
{

using namespace ucxl::mpi;

template <typename Init>
int start_mpi(Init&& init)
{
    library::prepare();
    int result = MPI_SUCCESS;
    {
        const hidden_options hidden;
        result = init();
    }
    if (result == MPI_SUCCESS) {
        library::start();
    }
    return result;
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
    library::stop();
    return PMPI_Finalize();
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
