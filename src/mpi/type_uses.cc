#include "type_uses.h"

namespace ucxl::mpi
{

constinit type_uses uses_of_types;

bool type_uses::pays(MPI_Datatype type, std::uint64_t moved) const noexcept
{
    int num_integers = 0, num_addresses = 0, num_types = 0, combiner = 0;
    if (_enough.load(std::memory_order_relaxed) == 0 ||
        PMPI_Type_get_envelope(type, &num_integers, &num_addresses, &num_types, &combiner) != MPI_SUCCESS) {
        return true;
    }
    const auto numbers = static_cast<std::uint64_t>(num_integers) + static_cast<std::uint64_t>(num_addresses);
    return moved >= bytes_of_number * numbers;
}

} // namespace ucxl::mpi
