// Collective calls. MPI's algorithms copy blocks with the CPU, so they get packed bytes (packed_side.h).
#include "call.h"
#include "collective_sides.h"
#include "peers.h"

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Count>
int broadcast(Next* next, void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (!is_taken(type)) [[likely]] {
        return next(buffer, count, type, root, comm);
    }
    const peers others(comm);
    const bool sends = others.is_root(root);
    const one_block<Count> whole{buffer, count, type};
    if (!others.is_valid || (others.has_two_groups && root == MPI_PROC_NULL)) {
        return next(buffer, count, type, root, comm);
    }
    const packed_block side(whole, sends ? direction::send : direction::receive);
    if (sends) {
        side.pack();
    }
    const int result = next(side.buffer_or(buffer), count, side.type_or(type), root, comm);
    if (!sends && result == MPI_SUCCESS) {
        side.unpack();
    }
    return result;
}

// The part of this process may be in the receive buffer already.
template <typename Next, typename Count>
int gather(Next* next, one_block<Count> sent, one_block<Count> received, int root, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, root, comm);
    }
    const peers others(comm);
    const bool is_root = others.is_valid && others.is_root(root);
    packed_block from, into;
    if (others.is_valid && others.faces_root(root) && sent.buffer != MPI_IN_PLACE) {
        from = packed_block(sent, direction::send);
        from.pack();
    }
    if (is_root) {
        into = packed_block(received.times(others.number), direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack_some(others.rank * static_cast<MPI_Count>(received.count), received.count);
        }
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), root, comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int gather_blocks(Next* next, one_block<Count> sent, blocks<Count, Place> received, int root, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.counts, received.places,
                    received.type, root, comm);
    }
    const peers others(comm);
    packed_block from;
    packed_blocks<Count, Place> into;
    if (others.is_valid && others.faces_root(root) && sent.buffer != MPI_IN_PLACE) {
        from = packed_block(sent, direction::send);
        from.pack();
    }
    if (others.is_valid && others.is_root(root)) {
        into = packed_blocks(received, others.number, direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack_block(others.rank);
        }
    }
    const int result =
        next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type), into.buffer_or(received.buffer),
             received.counts, into.places_or(received.places), into.type_or(received.type), root, comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count>
int scatter(Next* next, one_block<Count> sent, one_block<Count> received, int root, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, root, comm);
    }
    const peers others(comm);
    packed_block from, into;
    if (others.is_valid && others.is_root(root)) {
        from = packed_block(sent.times(others.number), direction::send);
        from.pack();
    }
    if (others.is_valid && others.faces_root(root) && received.buffer != MPI_IN_PLACE) {
        into = packed_block(received, direction::receive);
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), root, comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int scatter_blocks(Next* next, blocks<Count, Place> sent, one_block<Count> received, int root, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.counts, sent.places, sent.type, received.buffer, received.count, received.type,
                    root, comm);
    }
    const peers others(comm);
    packed_blocks<Count, Place> from;
    packed_block into;
    if (others.is_valid && others.is_root(root)) {
        from = packed_blocks(sent, others.number, direction::send);
        from.pack();
    }
    if (others.is_valid && others.faces_root(root) && received.buffer != MPI_IN_PLACE) {
        into = packed_block(received, direction::receive);
    }
    const int result =
        next(from.buffer_or(sent.buffer), sent.counts, from.places_or(sent.places), from.type_or(sent.type),
             into.buffer_or(received.buffer), received.count, into.type_or(received.type), root, comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count>
int gather_to_all(Next* next, one_block<Count> sent, one_block<Count> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, comm);
    }
    const peers others(comm);
    packed_block from, into;
    if (others.is_valid) {
        into = packed_block(received.times(others.number), direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack_some(others.rank * static_cast<MPI_Count>(received.count), received.count);
        } else {
            from = packed_block(sent, direction::send);
            from.pack();
        }
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int gather_blocks_to_all(Next* next, one_block<Count> sent, blocks<Count, Place> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.counts, received.places,
                    received.type, comm);
    }
    const peers others(comm);
    packed_block from;
    packed_blocks<Count, Place> into;
    if (others.is_valid) {
        into = packed_blocks(received, others.number, direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack_block(others.rank);
        } else {
            from = packed_block(sent, direction::send);
            from.pack();
        }
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
int exchange(Next* next, one_block<Count> sent, one_block<Count> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.count, sent.type, received.buffer, received.count, received.type, comm);
    }
    const peers others(comm);
    packed_block from, into;
    if (others.is_valid) {
        into = packed_block(received.times(others.number), direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack();
        } else {
            from = packed_block(sent.times(others.number), direction::send);
            from.pack();
        }
    }
    const int result = next(from.buffer_or(sent.buffer), sent.count, from.type_or(sent.type),
                            into.buffer_or(received.buffer), received.count, into.type_or(received.type), comm);
    if (result == MPI_SUCCESS) {
        into.unpack();
    }
    return result;
}

template <typename Next, typename Count, typename Place>
int exchange_blocks(Next* next, blocks<Count, Place> sent, blocks<Count, Place> received, MPI_Comm comm)
{
    if (!is_taken(sent.type) && !is_taken(received.type)) [[likely]] {
        return next(sent.buffer, sent.counts, sent.places, sent.type, received.buffer, received.counts, received.places,
                    received.type, comm);
    }
    const peers others(comm);
    packed_blocks<Count, Place> from, into;
    if (others.is_valid) {
        into = packed_blocks(received, others.number, direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.pack();
        } else {
            from = packed_blocks(sent, others.number, direction::send);
            from.pack();
        }
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
int exchange_types(Next* next, typed_blocks<Count, Place> sent, typed_blocks<Count, Place> received, MPI_Comm comm)
{
    packed_typed_blocks<Count, Place> from, into;
    if (takes_collectives() && !known_types.is_empty()) {
        const peers others(comm);
        if (others.is_valid) {
            into = packed_typed_blocks(received, others.number, direction::receive);
            if (sent.buffer == MPI_IN_PLACE) {
                into.pack();
            } else {
                from = packed_typed_blocks(sent, others.number, direction::send);
                from.pack();
            }
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

UCXL_MPI_CALL MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return broadcast(PMPI_Bcast, buffer, count, type, root, comm);
}

UCXL_MPI_CALL MPI_Gather(const void* from, int send_count, MPI_Datatype send_type, void* into, int receive_count,
                         MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    return gather(PMPI_Gather, one_block{const_cast<void*>(from), send_count, send_type},
                  one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Gatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                          const int receive_counts[], const int displacements[], MPI_Datatype receive_type, int root,
                          MPI_Comm comm)
{
    return gather_blocks(PMPI_Gatherv, one_block{const_cast<void*>(from), send_count, send_type},
                         blocks{into, receive_counts, displacements, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Scatter(const void* from, int send_count, MPI_Datatype send_type, void* into, int receive_count,
                          MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    return scatter(PMPI_Scatter, one_block{const_cast<void*>(from), send_count, send_type},
                   one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Scatterv(const void* from, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                           void* into, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    return scatter_blocks(PMPI_Scatterv, blocks{const_cast<void*>(from), send_counts, displacements, send_type},
                          one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Allgather(const void* from, int send_count, MPI_Datatype send_type, void* into, int receive_count,
                            MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_to_all(PMPI_Allgather, one_block{const_cast<void*>(from), send_count, send_type},
                         one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Allgatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                             const int receive_counts[], const int displacements[], MPI_Datatype receive_type,
                             MPI_Comm comm)
{
    return gather_blocks_to_all(PMPI_Allgatherv, one_block{const_cast<void*>(from), send_count, send_type},
                                blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoall(const void* from, int send_count, MPI_Datatype send_type, void* into, int receive_count,
                           MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Alltoall, one_block{const_cast<void*>(from), send_count, send_type},
                    one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallv(const void* from, const int send_counts[], const int send_displacements[],
                            MPI_Datatype send_type, void* into, const int receive_counts[],
                            const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_blocks(PMPI_Alltoallv, blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                           blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallw(const void* from, const int send_counts[], const int send_displacements[],
                            const MPI_Datatype send_types[], void* into, const int receive_counts[],
                            const int receive_displacements[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange_types(PMPI_Alltoallw,
                          typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                          typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return broadcast(PMPI_Bcast_c, buffer, count, type, root, comm);
}

UCXL_MPI_CALL MPI_Gather_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                           MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    return gather(PMPI_Gather_c, one_block{const_cast<void*>(from), send_count, send_type},
                  one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Gatherv_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                            const MPI_Count receive_counts[], const MPI_Aint displacements[], MPI_Datatype receive_type,
                            int root, MPI_Comm comm)
{
    return gather_blocks(PMPI_Gatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
                         blocks{into, receive_counts, displacements, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Scatter_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                            MPI_Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    return scatter(PMPI_Scatter_c, one_block{const_cast<void*>(from), send_count, send_type},
                   one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Scatterv_c(const void* from, const MPI_Count send_counts[], const MPI_Aint displacements[],
                             MPI_Datatype send_type, void* into, MPI_Count receive_count, MPI_Datatype receive_type,
                             int root, MPI_Comm comm)
{
    return scatter_blocks(PMPI_Scatterv_c, blocks{const_cast<void*>(from), send_counts, displacements, send_type},
                          one_block{into, receive_count, receive_type}, root, comm);
}

UCXL_MPI_CALL MPI_Allgather_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                              MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_to_all(PMPI_Allgather_c, one_block{const_cast<void*>(from), send_count, send_type},
                         one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Allgatherv_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                               const MPI_Count receive_counts[], const MPI_Aint displacements[],
                               MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather_blocks_to_all(PMPI_Allgatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
                                blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoall_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                             MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Alltoall_c, one_block{const_cast<void*>(from), send_count, send_type},
                    one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallv_c(const void* from, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                              MPI_Datatype send_type, void* into, const MPI_Count receive_counts[],
                              const MPI_Aint receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange_blocks(PMPI_Alltoallv_c,
                           blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                           blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallw_c(const void* from, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                              const MPI_Datatype send_types[], void* into, const MPI_Count receive_counts[],
                              const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange_types(PMPI_Alltoallw_c,
                          typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                          typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#endif
