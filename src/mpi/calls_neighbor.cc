// Collective calls among neighbours. MPI's algorithms copy blocks with the CPU, so they get packed bytes
// (packed_side.h).
#include "call.h"
#include "collective_sides.h"
#include "peers.h"

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Count>
int gather_neighbors(Next* next, one_block<Count> sent, one_block<Count> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, comm);
    }
    const neighbors others(comm);
    packed_block from, into;
    if (others.is_valid) {
        from = packed_block(sent, direction::send);
        into = packed_block(received.times(others.sources), direction::receive);
        from.pack();
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int gather_neighbor_blocks(Next* next, one_block<Count> sent, blocks<Count, Place> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.counts, received.places,
                    received.type, comm);
    }
    const neighbors others(comm);
    packed_block from;
    packed_blocks<Count, Place> into;
    if (others.is_valid) {
        from = packed_block(sent, direction::send);
        into = packed_blocks(received, others.sources, direction::receive);
        from.pack();
    }
    const int result =
        next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type), into.buffer_or(received.buffer),
             received.counts, into.places_or(received.places), into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count>
int exchange_neighbors(Next* next, one_block<Count> sent, one_block<Count> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, comm);
    }
    const neighbors others(comm);
    packed_block from, into;
    if (others.is_valid) {
        from = packed_block(sent.times(others.destinations), direction::send);
        into = packed_block(received.times(others.sources), direction::receive);
        from.pack();
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int exchange_neighbor_blocks(Next* next, blocks<Count, Place> sent, blocks<Count, Place> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.counts, sent.places, sent.type, received.buffer, received.counts, received.places,
                    received.type, comm);
    }
    const neighbors others(comm);
    packed_blocks<Count, Place> from, into;
    if (others.is_valid) {
        from = packed_blocks(sent, others.destinations, direction::send);
        into = packed_blocks(received, others.sources, direction::receive);
        from.pack();
    }
    const int result = next(from.buffer_or(sent.buffer), sent.counts, from.places_or(sent.places),
                            from.type_or(sent.type), into.buffer_or(received.buffer), received.counts,
                            into.places_or(received.places), into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int exchange_neighbor_types(Next* next, typed_blocks<Count, Place> sent, typed_blocks<Count, Place> received,
                            MPI_Comm comm)
{
    packed_typed_blocks<Count, Place> from, into;
    if (takes_collectives() && !known_types.is_empty()) {
        const neighbors others(comm);
        if (others.is_valid) {
            from = packed_typed_blocks(sent, others.destinations, direction::send);
            into = packed_typed_blocks(received, others.sources, direction::receive);
            from.pack();
        }
    }
    const int result = next(from.buffer_or(sent.buffer), sent.counts, from.places_or(sent.places),
                            from.types_or(sent.types), into.buffer_or(received.buffer), received.counts,
                            into.places_or(received.places), into.types_or(received.types), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

} // namespace

UCXL_MPI_CALL MPI_Neighbor_allgather(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                     int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_neighbors(PMPI_Neighbor_allgather, one_block{const_cast<void*>(from), send_count, send_type},
                            one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_allgatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                      const int receive_counts[], const int displacements[], MPI_Datatype receive_type,
                                      MPI_Comm comm)
{
    return gather_neighbor_blocks(PMPI_Neighbor_allgatherv, one_block{const_cast<void*>(from), send_count, send_type},
                                  blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoall(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                    int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_neighbors(PMPI_Neighbor_alltoall, one_block{const_cast<void*>(from), send_count, send_type},
                              one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallv(const void* from, const int send_counts[], const int send_displacements[],
                                     MPI_Datatype send_type, void* into, const int receive_counts[],
                                     const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_neighbor_blocks(PMPI_Neighbor_alltoallv,
                                    blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallw(const void* from, const int send_counts[], const MPI_Aint send_displacements[],
                                     const MPI_Datatype send_types[], void* into, const int receive_counts[],
                                     const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                                     MPI_Comm comm)
{
    return exchange_neighbor_types(PMPI_Neighbor_alltoallw,
                                   typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                                   typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Neighbor_allgather_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                       MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_neighbors(PMPI_Neighbor_allgather_c, one_block{const_cast<void*>(from), send_count, send_type},
                            one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_allgatherv_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                        const MPI_Count receive_counts[], const MPI_Aint displacements[],
                                        MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_neighbor_blocks(PMPI_Neighbor_allgatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
                                  blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoall_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                      MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_neighbors(PMPI_Neighbor_alltoall_c, one_block{const_cast<void*>(from), send_count, send_type},
                              one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallv_c(const void* from, const MPI_Count send_counts[],
                                       const MPI_Aint send_displacements[], MPI_Datatype send_type, void* into,
                                       const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                                       MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_neighbor_blocks(PMPI_Neighbor_alltoallv_c,
                                    blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallw_c(const void* from, const MPI_Count send_counts[],
                                       const MPI_Aint send_displacements[], const MPI_Datatype send_types[], void* into,
                                       const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                                       const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange_neighbor_types(PMPI_Neighbor_alltoallw_c,
                                   typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                                   typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#endif
