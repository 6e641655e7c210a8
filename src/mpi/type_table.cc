#include "type_table.h"

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

} // namespace ucxl::mpi
