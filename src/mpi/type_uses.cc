#include "type_uses.h"

namespace ucxl::mpi
{

constinit type_uses uses_of_types;

bool type_uses::is_wanted(MPI_Datatype type, MPI_Count count) noexcept
{
    place& own = place_of(number_of(type));
    if (own.key.load(std::memory_order_relaxed) != number_of(type)) {
        begin(type, own, 0);
        own.left.store(not_asked, std::memory_order_relaxed);
        return false;
    }
    if (own.left.load(std::memory_order_relaxed) <= not_asked) {
        begin(type, own, size_of(type));
        note(type, count, 1);
    }
    const std::int64_t enough = _enough.load(std::memory_order_relaxed);
    if (own.size.load(std::memory_order_relaxed) == 0 || count <= 0) {
        own.left.store(enough, std::memory_order_relaxed);
        return false;
    }
    const std::int64_t left = own.left.load(std::memory_order_relaxed);
    return left <= 0 && pays(type, enough - left);
}

bool type_uses::pays(MPI_Datatype type, std::int64_t moved) const noexcept
{
    int num_integers = 0, num_addresses = 0, num_types = 0, combiner = 0;
    if (_enough.load(std::memory_order_relaxed) == 0 ||
        PMPI_Type_get_envelope(type, &num_integers, &num_addresses, &num_types, &combiner) != MPI_SUCCESS) {
        return true;
    }
    return moved >= bytes_of_number * (std::int64_t{num_integers} + num_addresses);
}

} // namespace ucxl::mpi
