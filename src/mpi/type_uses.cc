#include "type_uses.h"

namespace ucxl::mpi
{

constinit type_uses uses_of_types;

bool type_uses::is_wanted(MPI_Datatype type, MPI_Count count) noexcept
{
    place& own = place_of(number_of(type));
    if (own.key.load(std::memory_order_relaxed) != number_of(type)) {
        begin(type, own, 0, not_asked);
        return false;
    }
    auto moved = own.moved.load(std::memory_order_relaxed);
    if (moved >= not_asked) {
        const std::uint64_t size = size_of(type);
        moved                    = moved_by(size, count);
        begin(type, own, size, moved);
    }
    if (own.size.load(std::memory_order_relaxed) == 0 || count <= 0) {
        own.moved.store(0, std::memory_order_relaxed);
        return false;
    }
    return moved >= _enough.load(std::memory_order_relaxed) && pays(type, moved);
}

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
