// MPI_Pack and MPI_Unpack. Both MPIs pack plain bytes, so packed buffers of either origin are the same.
#include "call.h"
#include "packed_side.h"
#include "settings.h"

#include <limits>
#include <optional>

namespace
{

using namespace ucxl::mpi;

// None if MPI shall do it, also if it has to complain about the buffer of packed bytes or about the communicator.
template <typename Position>
[[gnu::noinline]] std::optional<packed_side> elements_of(const void* buffer, MPI_Count count, MPI_Datatype type,
                                                         direction way, const void* packed, Position size,
                                                         const Position* position, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL || look_at(type, count) == nullptr || !settings::get().takes_packs || packed == nullptr ||
        position == nullptr || *position < 0) {
        return std::nullopt;
    }
    auto side = packed_side::without_memory(buffer, count, type, way);
    return side && side->length() <= static_cast<MPI_Count>(size) - *position ? std::move(side) : std::nullopt;
}

template <typename Next, typename Count, typename Position>
[[gnu::noinline]] int pack_known(Next* next, const void* buffer, Count count, MPI_Datatype type, void* packed,
                                 Position size, Position* position, MPI_Comm comm)
{
    const auto side = elements_of(buffer, count, type, direction::send, packed, size, position, comm);
    if (!side) {
        return next(buffer, count, type, packed, size, position, comm);
    }
    side->pack_into(static_cast<std::byte*>(packed) + *position);
    *position += static_cast<Position>(side->length());
    return MPI_SUCCESS;
}

template <typename Next, typename Count, typename Position>
[[gnu::noinline]] int unpack_known(Next* next, const void* packed, Position size, Position* position, void* buffer,
                                   Count count, MPI_Datatype type, MPI_Comm comm)
{
    const auto side = elements_of(buffer, count, type, direction::receive, packed, size, position, comm);
    if (!side) {
        return next(packed, size, position, buffer, count, type, comm);
    }
    side->unpack_from(static_cast<const std::byte*>(packed) + *position);
    *position += static_cast<Position>(side->length());
    return MPI_SUCCESS;
}

template <typename Next, typename Count, typename Position>
UCXL_MPI_FAST int pack(Next* next, const void* buffer, Count count, MPI_Datatype type, void* packed, Position size,
                       Position* position, MPI_Comm comm)
{
    return is_left_alone(type, count) ? next(buffer, count, type, packed, size, position, comm)
                                      : pack_known(next, buffer, count, type, packed, size, position, comm);
}

template <typename Next, typename Count, typename Position>
UCXL_MPI_FAST int unpack(Next* next, const void* packed, Position size, Position* position, void* buffer, Count count,
                         MPI_Datatype type, MPI_Comm comm)
{
    return is_left_alone(type, count) ? next(packed, size, position, buffer, count, type, comm)
                                      : unpack_known(next, packed, size, position, buffer, count, type, comm);
}

} // namespace

UCXL_MPI_CALL own_MPI_Pack(const void* buffer, int count, MPI_Datatype type, void* packed, int size, int* position,
                           MPI_Comm comm)
{
    return pack(next_MPI_Pack, buffer, count, type, packed, size, position, comm);
}

UCXL_MPI_CALL own_MPI_Unpack(const void* packed, int size, int* position, void* buffer, int count, MPI_Datatype type,
                             MPI_Comm comm)
{
    return unpack(next_MPI_Unpack, packed, size, position, buffer, count, type, comm);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL own_MPI_Pack_c(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed, MPI_Count size,
                             MPI_Count* position, MPI_Comm comm)
{
    return pack(next_MPI_Pack_c, buffer, count, type, packed, size, position, comm);
}

UCXL_MPI_CALL own_MPI_Unpack_c(const void* packed, MPI_Count size, MPI_Count* position, void* buffer, MPI_Count count,
                               MPI_Datatype type, MPI_Comm comm)
{
    return unpack(next_MPI_Unpack_c, packed, size, position, buffer, count, type, comm);
}
#endif
