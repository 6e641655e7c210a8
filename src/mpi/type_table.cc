#include "type_table.h"

#include "implementation.h"

namespace ucxl::mpi
{

constinit handle_table<MPI_Datatype, known_type> known_types;

known_type* look_at(MPI_Datatype type, MPI_Count count) noexcept
{
    if (own_types::has(type)) {
        return count >= one_pass::min_count() ? one_pass::find(type, count) : nullptr;
    }
    known_type* const known = known_types.find(type);
    if (known != nullptr) {
        return known;
    }
    return uses_of_types.is_wanted(type, count) ? learn(type) : nullptr;
}

std::optional<MPI_Count> size_of_number(MPI_Datatype type) noexcept
{
    MPI_Count size = 0, lb = 0, extent = 0;
    const bool is_plain = is_own_number(type) && PMPI_Type_size_x(type, &size) == MPI_SUCCESS &&
                          PMPI_Type_get_extent_x(type, &lb, &extent) == MPI_SUCCESS && extent == size && lb == 0;
    return is_plain ? std::optional(size) : std::nullopt;
}

} // namespace ucxl::mpi
