// Collective calls among neighbours. MPI's algorithms copy blocks with the CPU, so they get packed bytes
// (packed_side.h).
#include "call.h"
#include "packed_call.h"
#include "peers.h"

#include <vector>

namespace
{

using namespace ucxl::mpi;

// A neighbour that a grid does not have at its border neither reads nor updates its block.
auto of_neighbors(const std::vector<bool>& is_there, usage use)
{
    return [&is_there, use](std::size_t index) { return is_there[index] ? use : usage::none; };
}

template <typename Next, typename Sent, typename Received, typename Form>
int gather(Next* next, const Sent& sent, const Received& received, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(comm), form, [&](auto& from, auto& into, auto& /*own*/) {
        const auto others = neighbors_of(comm);
        if (others && others->is_valid) {
            const bool may_be_shown = can_take_windows(comm);
            from.expect_messages_only(may_be_shown);
            into.expect_messages_only(may_be_shown);
            if (others->has_destination()) {
                from.take(1, each_block(usage::reads));
            }
            into.take(others->sources.size(), of_neighbors(others->sources, usage::updates));
        }
    });
}

template <typename Next, typename Sent, typename Received, typename Form>
int exchange(Next* next, const Sent& sent, const Received& received, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(comm), form, [&](auto& from, auto& into, auto& /*own*/) {
        const auto others = neighbors_of(comm);
        if (others && others->is_valid) {
            const bool may_be_shown = can_take_windows(comm);
            from.expect_messages_only(may_be_shown);
            into.expect_messages_only(may_be_shown);
            from.take(others->destinations.size(), of_neighbors(others->destinations, usage::reads));
            into.take(others->sources.size(), of_neighbors(others->sources, usage::updates));
        }
    });
}

} // namespace

// `c` ends the names of the calls with large counts.
#define UCXL_NEIGHBOR_CALLS(c, Count, Place)                                                                           \
    UCXL_MPI_COLLECTIVE(Neighbor_allgather##c, Ineighbor_allgather##c, Neighbor_allgather_init##c,                     \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, MPI_Comm comm),                                                    \
                        gather(next, one_block{from, send_count, send_type},                                           \
                               one_block{into, receive_count, receive_type}, comm, form))                              \
    UCXL_MPI_COLLECTIVE(Neighbor_allgatherv##c, Ineighbor_allgatherv##c, Neighbor_allgatherv_init##c,                  \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into,                       \
                         const Count receive_counts[], const Place places[], MPI_Datatype receive_type,                \
                         MPI_Comm comm),                                                                               \
                        gather(next, one_block{from, send_count, send_type},                                           \
                               blocks{into, receive_counts, places, receive_type}, comm, form))                        \
    UCXL_MPI_COLLECTIVE(Neighbor_alltoall##c, Ineighbor_alltoall##c, Neighbor_alltoall_init##c,                        \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, MPI_Comm comm),                                                    \
                        exchange(next, one_block{from, send_count, send_type},                                         \
                                 one_block{into, receive_count, receive_type}, comm, form))                            \
    UCXL_MPI_COLLECTIVE(Neighbor_alltoallv##c, Ineighbor_alltoallv##c, Neighbor_alltoallv_init##c,                     \
                        (const void* from, const Count send_counts[], const Place send_places[],                       \
                         MPI_Datatype send_type, void* into, const Count receive_counts[],                             \
                         const Place receive_places[], MPI_Datatype receive_type, MPI_Comm comm),                      \
                        exchange(next, blocks{from, send_counts, send_places, send_type},                              \
                                 blocks{into, receive_counts, receive_places, receive_type}, comm, form))              \
    UCXL_MPI_COLLECTIVE(Neighbor_alltoallw##c, Ineighbor_alltoallw##c, Neighbor_alltoallw_init##c,                     \
                        (const void* from, const Count send_counts[], const MPI_Aint send_places[],                    \
                         const MPI_Datatype send_types[], void* into, const Count receive_counts[],                    \
                         const MPI_Aint receive_places[], const MPI_Datatype receive_types[], MPI_Comm comm),          \
                        exchange(next, typed_blocks{from, send_counts, send_places, send_types},                       \
                                 typed_blocks{into, receive_counts, receive_places, receive_types}, comm, form))

UCXL_NEIGHBOR_CALLS(, int, int)
#if UCXL_LARGE_COUNTS
UCXL_NEIGHBOR_CALLS(_c, MPI_Count, MPI_Aint)
#endif
