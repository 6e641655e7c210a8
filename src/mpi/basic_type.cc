#include "basic_type.h"

#include "type_contents.h"

#include <optional>

namespace ucxl::mpi
{

namespace
{

// Packed elements of it are an array of it. Markers of bounds have no bytes.
bool has_no_gaps(MPI_Datatype type, MPI_Count& size)
{
    MPI_Count lb = 0, extent = 0;
    return PMPI_Type_size_x(type, &size) == MPI_SUCCESS && PMPI_Type_get_extent_x(type, &lb, &extent) == MPI_SUCCESS &&
           (size == 0 || (lb == 0 && extent == size));
}

// False if another one than `found` is in it.
bool find(MPI_Datatype type, MPI_Datatype& found)
{
    const auto contents = type_contents::read(type);
    if (!contents) {
        return false;
    }
    if (is_named(contents->combiner)) {
        MPI_Count size = 0;
        if (!has_no_gaps(type, size)) {
            return false;
        }
        if (size > 0 && found == MPI_DATATYPE_NULL) {
            found = type;
        }
        return size == 0 || found == type;
    }
    for (const MPI_Datatype each : contents->types) {
        if (!find(each, found)) {
            return false;
        }
    }
    return true;
}

} // namespace

MPI_Datatype basic_type_of(MPI_Datatype type)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    return find(type, found) ? found : MPI_DATATYPE_NULL;
}

} // namespace ucxl::mpi
