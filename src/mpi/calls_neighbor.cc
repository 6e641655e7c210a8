// Collective calls among neighbours. MPI's algorithms copy blocks with the CPU, so they get packed bytes
// (packed_side.h).
#include "call.h"
#include "packed_call.h"
#include "peers.h"

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Sent, typename Received>
int gather(Next* next, const Sent& sent, const Received& received, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(comm), [&](auto& from, auto& into) {
        const neighbors others(comm);
        if (others.is_valid) {
            from.take(1, direction::send);
            into.take(others.sources, direction::receive);
        }
    });
}

template <typename Next, typename Side>
int exchange(Next* next, const Side& sent, const Side& received, MPI_Comm comm)
{
    return call_packed(next, sent, received, std::tuple(comm), [&](auto& from, auto& into) {
        const neighbors others(comm);
        if (others.is_valid) {
            from.take(others.destinations, direction::send);
            into.take(others.sources, direction::receive);
        }
    });
}

} // namespace

UCXL_MPI_CALL MPI_Neighbor_allgather(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                     int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather(PMPI_Neighbor_allgather, one_block{const_cast<void*>(from), send_count, send_type},
                  one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_allgatherv(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                      const int receive_counts[], const int displacements[], MPI_Datatype receive_type,
                                      MPI_Comm comm)
{
    return gather(PMPI_Neighbor_allgatherv, one_block{const_cast<void*>(from), send_count, send_type},
                  blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoall(const void* from, int send_count, MPI_Datatype send_type, void* into,
                                    int receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoall, one_block{const_cast<void*>(from), send_count, send_type},
                    one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallv(const void* from, const int send_counts[], const int send_displacements[],
                                     MPI_Datatype send_type, void* into, const int receive_counts[],
                                     const int receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoallv,
                    blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallw(const void* from, const int send_counts[], const MPI_Aint send_displacements[],
                                     const MPI_Datatype send_types[], void* into, const int receive_counts[],
                                     const MPI_Aint receive_displacements[], const MPI_Datatype receive_types[],
                                     MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoallw,
                    typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                    typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Neighbor_allgather_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                       MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather(PMPI_Neighbor_allgather_c, one_block{const_cast<void*>(from), send_count, send_type},
                  one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_allgatherv_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                        const MPI_Count receive_counts[], const MPI_Aint displacements[],
                                        MPI_Datatype receive_type, MPI_Comm comm)
{
    return gather(PMPI_Neighbor_allgatherv_c, one_block{const_cast<void*>(from), send_count, send_type},
                  blocks{into, receive_counts, displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoall_c(const void* from, MPI_Count send_count, MPI_Datatype send_type, void* into,
                                      MPI_Count receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoall_c, one_block{const_cast<void*>(from), send_count, send_type},
                    one_block{into, receive_count, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallv_c(const void* from, const MPI_Count send_counts[],
                                       const MPI_Aint send_displacements[], MPI_Datatype send_type, void* into,
                                       const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                                       MPI_Datatype receive_type, MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoallv_c,
                    blocks{const_cast<void*>(from), send_counts, send_displacements, send_type},
                    blocks{into, receive_counts, receive_displacements, receive_type}, comm);
}

UCXL_MPI_CALL MPI_Neighbor_alltoallw_c(const void* from, const MPI_Count send_counts[],
                                       const MPI_Aint send_displacements[], const MPI_Datatype send_types[], void* into,
                                       const MPI_Count receive_counts[], const MPI_Aint receive_displacements[],
                                       const MPI_Datatype receive_types[], MPI_Comm comm)
{
    return exchange(PMPI_Neighbor_alltoallw_c,
                    typed_blocks{const_cast<void*>(from), send_counts, send_displacements, send_types},
                    typed_blocks{into, receive_counts, receive_displacements, receive_types}, comm);
}

#endif
