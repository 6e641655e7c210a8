// Collective calls. MPI's algorithms copy blocks with the CPU, so they get packed bytes (packed_side.h).
#include "call.h"
#include "packed_call.h"
#include "peers.h"

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Side>
int broadcast(Next* next, const Side& whole, int root, MPI_Comm comm)
{
    return call_packed(next, whole, no_side(), std::tuple(root, comm), [&](auto& side, auto& /*none*/) {
        const peers others(comm);
        if (others.is_valid && !(others.has_two_groups && root == MPI_PROC_NULL)) {
            side.take(1, others.is_root(root) ? direction::send : direction::receive);
        }
    });
}

// The part of this process may be in the receive buffer already.
template <typename Next, typename Sent, typename Received>
int gather(Next* next, const Sent& sent, const Received& received, int root, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(root, comm), [&](auto& from, auto& into) {
        const peers others(comm);
        if (others.is_valid && others.faces_root(root) && sent.buffer != MPI_IN_PLACE) {
            from.take(1, direction::send);
        }
        if (others.is_valid && others.is_root(root)) {
            into.take(others.number, direction::receive);
            if (sent.buffer == MPI_IN_PLACE) {
                into.keep_block(others.rank);
            }
        }
    });
}

template <typename Next, typename Sent, typename Received>
int scatter(Next* next, const Sent& sent, const Received& received, int root, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(root, comm), [&](auto& from, auto& into) {
        const peers others(comm);
        if (others.is_valid && others.is_root(root)) {
            from.take(others.number, direction::send);
        }
        if (others.is_valid && others.faces_root(root) && received.buffer != MPI_IN_PLACE) {
            into.take(1, direction::receive);
        }
    });
}

template <typename Next, typename Sent, typename Received>
int gather_to_all(Next* next, const Sent& sent, const Received& received, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(comm), [&](auto& from, auto& into) {
        const peers others(comm);
        if (!others.is_valid) {
            return;
        }
        into.take(others.number, direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.keep_block(others.rank);
        } else {
            from.take(1, direction::send);
        }
    });
}

template <typename Next, typename Side>
int exchange(Next* next, const Side& sent, const Side& received, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(comm), [&](auto& from, auto& into) {
        const peers others(comm);
        if (!others.is_valid) {
            return;
        }
        into.take(others.number, direction::receive);
        if (sent.buffer == MPI_IN_PLACE) {
            into.keep_all();
        } else {
            from.take(others.number, direction::send);
        }
    });
}

} // namespace

UCXL_MPI_CALL MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return broadcast(PMPI_Bcast, one_block{buffer, count, type}, root, comm);
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
    return gather(PMPI_Gatherv, one_block{const_cast<void*>(from), send_count, send_type},
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
    return scatter(PMPI_Scatterv, blocks{const_cast<void*>(from), send_counts, displacements, send_type},
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
    return gather_to_all(PMPI_Allgatherv, one_block{const_cast<void*>(from), send_count, send_type},
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
    return exchange(PMPI_Alltoallv, blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallw(const void* from, const int send_counts[], const int send_displacements[],
                            const MPI_Datatype send_types[], void* into, const int receive_counts[],
                            const int receive_displacements[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange(PMPI_Alltoallw, typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                    typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    return broadcast(PMPI_Bcast_c, one_block{buffer, count, type}, root, comm);
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
    return gather(PMPI_Gatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
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
    return scatter(PMPI_Scatterv_c, blocks{const_cast<void*>(from), send_counts, displacements, send_type},
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
    return gather_to_all(PMPI_Allgatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
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
    return exchange(PMPI_Alltoallv_c, blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Alltoallw_c(const void* from, const MPI_Count send_counts[], const MPI_Aint send_displacements[],
                              const MPI_Datatype send_types[], void* into, const MPI_Count receive_counts[],
                              const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange(PMPI_Alltoallw_c,
                    typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                    typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#endif
