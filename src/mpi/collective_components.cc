#include "collective_components.h"

#include "implementation.h"
#include "library.h"
#include "mpi_functions.h"

#include <algorithm>
#include <array>

namespace ucxl::mpi
{

namespace
{

// What turns on components of Open MPI that copy through memory of their own. All but that of hcoll, which comes with
// another package, are off unless a user asks for them; hcoll and ucc may do anything.
constexpr std::array switches = {"coll_sm_priority", "coll_xhc_priority", "coll_acoll_priority", "coll_hcoll_enable",
                                 "coll_ucc_enable"};

// 0 if Open MPI does not have it.
int value_of(const char* variable)
{
    int index = 0, count = 0;
    std::array<int, 16> value{};
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    if (PMPI_T_cvar_get_index(variable, &index) != MPI_SUCCESS ||
        PMPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) {
        return 0;
    }
    if (count != 1 || PMPI_T_cvar_read(handle, value.data()) != MPI_SUCCESS) {
        value[0] = 0;
    }
    PMPI_T_cvar_handle_free(&handle);
    return value[0];
}

} // namespace

bool collectives_only_send()
{
    if (implementation_below() != implementation::openmpi) {
        return true; // MPICH over UCX
    }
    // Open MPI takes what is required here for the thread level of all of MPI.
    int level = MPI_THREAD_MULTIPLE, provided = 0;
    if (library::has_world()) {
        PMPI_Query_thread(&level);
    }
    if (PMPI_T_init_thread(level, &provided) != MPI_SUCCESS) {
        return false;
    }
    const bool is_any_on = std::ranges::any_of(switches, [](const char* each) { return value_of(each) > 0; });
    PMPI_T_finalize();
    return !is_any_on;
}

} // namespace ucxl::mpi
