// Collective calls. MPI's algorithms copy blocks with the CPU, so they get packed bytes (packed_side.h).
#include "call.h"
#include "packed_call.h"
#include "peers.h"

namespace
{

using namespace ucxl::mpi;

// MPI copies nothing between two groups either, but nobody has measured that.
bool can_be_shown(const peers& others)
{
    return others.is_valid && !others.has_two_groups && others.number > 1;
}

template <typename Next, typename Side, typename Form>
int broadcast(Next* next, const Side& whole, int root, MPI_Comm comm, Form form)
{
    return call_packed(next, whole, no_side(), std::tuple(root, comm), form,
                       [&](auto& side, auto& /*none*/, auto& /*own*/) {
                           const peers others(comm);
                           if (others.is_valid && !(others.has_two_groups && root == MPI_PROC_NULL)) {
                               side.expect_messages_only(can_be_shown(others));
                               side.take(1, each_block(others.is_root(root) ? usage::reads : usage::updates));
                           }
                       });
}

// The part of this process may be in the receive buffer already, and stays there.
template <typename Next, typename Sent, typename Received, typename Form>
int gather(Next* next, const Sent& sent, const Received& received, int root, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(root, comm), form, [&](auto& from, auto& into, auto& own) {
        const peers others(comm);
        if constexpr (has_blocks_of_each<Received>) {
            from.expect_messages_and_own_part();
            into.expect_messages_and_own_part();
            if (can_be_shown(others) && others.is_root(root)) {
                into.show(others.number, each_block_but(others.own_block(), usage::none, usage::updates));
                if (sent.buffer != MPI_IN_PLACE) {
                    own.take_of_shown(from, into, others);
                }
            } else if (can_be_shown(others)) {
                from.show(1, each_block(usage::reads));
            }
        }
        if (others.is_valid && others.faces_root(root) && sent.buffer != MPI_IN_PLACE) {
            from.take(1, each_block(usage::reads));
        }
        if (others.is_valid && others.is_root(root)) {
            const std::size_t left = sent.buffer == MPI_IN_PLACE ? others.own_block() : no_block;
            into.take(others.number, each_block_but(left, usage::none, usage::updates));
            if (has_blocks_of_each<Received> && sent.buffer != MPI_IN_PLACE) {
                own.take(from, into, others);
            }
        }
    });
}

template <typename Next, typename Sent, typename Received, typename Form>
int scatter(Next* next, const Sent& sent, const Received& received, int root, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(root, comm), form, [&](auto& from, auto& into, auto& own) {
        const peers others(comm);
        if constexpr (has_blocks_of_each<Sent>) {
            from.expect_messages_and_own_part();
            into.expect_messages_and_own_part();
            if (can_be_shown(others) && others.is_root(root)) {
                from.show(others.number, each_block_but(others.own_block(), usage::none, usage::reads));
                if (received.buffer != MPI_IN_PLACE) {
                    own.take_of_shown(from, into, others);
                }
            } else if (can_be_shown(others)) {
                into.show(1, each_block(usage::updates));
            }
        }
        if (others.is_valid && others.is_root(root)) {
            const std::size_t left = received.buffer == MPI_IN_PLACE ? others.own_block() : no_block;
            from.take(others.number, each_block_but(left, usage::none, usage::reads));
        }
        if (others.is_valid && others.faces_root(root) && received.buffer != MPI_IN_PLACE) {
            into.take(1, each_block(usage::updates));
            if (has_blocks_of_each<Sent> && others.is_root(root)) {
                own.take(from, into, others);
            }
        }
    });
}

template <typename Next, typename Sent, typename Received, typename Form>
int gather_to_all(Next* next, const Sent& sent, const Received& received, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(comm), form, [&](auto& from, auto& into, auto& /*own*/) {
        const peers others(comm);
        if (!others.is_valid) {
            return;
        }
        if (sent.buffer == MPI_IN_PLACE) {
            into.take(others.number, each_block_but(others.own_block(), usage::reads, usage::updates));
        } else {
            from.take(1, each_block(usage::reads));
            into.take(others.number, each_block(usage::updates));
        }
    });
}

template <typename Next, typename Sent, typename Received, typename Form>
int exchange(Next* next, const Sent& sent, const Received& received, MPI_Comm comm, Form form)
{
    return call_packed(next, sent, received, std::tuple(comm), form, [&](auto& from, auto& into, auto& own) {
        const peers others(comm);
        if (!others.is_valid) {
            return;
        }
        if (sent.buffer == MPI_IN_PLACE) {
            into.take(others.number, each_block(usage::both));
        } else {
            if constexpr (has_blocks_of_each<Sent>) {
                from.expect_messages_and_own_part();
                into.expect_messages_and_own_part();
                if (can_be_shown(others)) {
                    from.show(others.number, each_block_but(others.own_block(), usage::none, usage::reads));
                    into.show(others.number, each_block_but(others.own_block(), usage::none, usage::updates));
                    own.take_of_shown(from, into, others);
                }
            }
            from.take(others.number, each_block(usage::reads));
            into.take(others.number, each_block(usage::updates));
            if constexpr (has_blocks_of_each<Sent>) {
                own.take(from, into, others);
            }
        }
    });
}

} // namespace

// `c` ends the names of the calls with large counts.
#define UCXL_COLLECTIVES(c, Count, Place)                                                                              \
    UCXL_MPI_COLLECTIVE(Bcast##c, Ibcast##c, Bcast_init##c,                                                            \
                        (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm),                       \
                        broadcast(next, one_block{buffer, count, type}, root, comm, form))                             \
    UCXL_MPI_COLLECTIVE(Gather##c, Igather##c, Gather_init##c,                                                         \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, int root, MPI_Comm comm),                                          \
                        gather(next, one_block{from, send_count, send_type},                                           \
                               one_block{into, receive_count, receive_type}, root, comm, form))                        \
    UCXL_MPI_COLLECTIVE(Gatherv##c, Igatherv##c, Gatherv_init##c,                                                      \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into,                       \
                         const Count receive_counts[], const Place places[], MPI_Datatype receive_type, int root,      \
                         MPI_Comm comm),                                                                               \
                        gather(next, one_block{from, send_count, send_type},                                           \
                               blocks{into, receive_counts, places, receive_type}, root, comm, form))                  \
    UCXL_MPI_COLLECTIVE(Scatter##c, Iscatter##c, Scatter_init##c,                                                      \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, int root, MPI_Comm comm),                                          \
                        scatter(next, one_block{from, send_count, send_type},                                          \
                                one_block{into, receive_count, receive_type}, root, comm, form))                       \
    UCXL_MPI_COLLECTIVE(Scatterv##c, Iscatterv##c, Scatterv_init##c,                                                   \
                        (const void* from, const Count send_counts[], const Place places[], MPI_Datatype send_type,    \
                         void* into, Count receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm),         \
                        scatter(next, blocks{from, send_counts, places, send_type},                                    \
                                one_block{into, receive_count, receive_type}, root, comm, form))                       \
    UCXL_MPI_COLLECTIVE(Allgather##c, Iallgather##c, Allgather_init##c,                                                \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, MPI_Comm comm),                                                    \
                        gather_to_all(next, one_block{from, send_count, send_type},                                    \
                                      one_block{into, receive_count, receive_type}, comm, form))                       \
    UCXL_MPI_COLLECTIVE(Allgatherv##c, Iallgatherv##c, Allgatherv_init##c,                                             \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into,                       \
                         const Count receive_counts[], const Place places[], MPI_Datatype receive_type,                \
                         MPI_Comm comm),                                                                               \
                        gather_to_all(next, one_block{from, send_count, send_type},                                    \
                                      blocks{into, receive_counts, places, receive_type}, comm, form))                 \
    UCXL_MPI_COLLECTIVE(Alltoall##c, Ialltoall##c, Alltoall_init##c,                                                   \
                        (const void* from, Count send_count, MPI_Datatype send_type, void* into, Count receive_count,  \
                         MPI_Datatype receive_type, MPI_Comm comm),                                                    \
                        exchange(next, one_block{from, send_count, send_type},                                         \
                                 one_block{into, receive_count, receive_type}, comm, form))                            \
    UCXL_MPI_COLLECTIVE(Alltoallv##c, Ialltoallv##c, Alltoallv_init##c,                                                \
                        (const void* from, const Count send_counts[], const Place send_places[],                       \
                         MPI_Datatype send_type, void* into, const Count receive_counts[],                             \
                         const Place receive_places[], MPI_Datatype receive_type, MPI_Comm comm),                      \
                        exchange(next, blocks{from, send_counts, send_places, send_type},                              \
                                 blocks{into, receive_counts, receive_places, receive_type}, comm, form))              \
    UCXL_MPI_COLLECTIVE(Alltoallw##c, Ialltoallw##c, Alltoallw_init##c,                                                \
                        (const void* from, const Count send_counts[], const Place send_places[],                       \
                         const MPI_Datatype send_types[], void* into, const Count receive_counts[],                    \
                         const Place receive_places[], const MPI_Datatype receive_types[], MPI_Comm comm),             \
                        exchange(next, typed_blocks{from, send_counts, send_places, send_types},                       \
                                 typed_blocks{into, receive_counts, receive_places, receive_types}, comm, form))

UCXL_COLLECTIVES(, int, int)
#if UCXL_LARGE_COUNTS
UCXL_COLLECTIVES(_c, MPI_Count, MPI_Aint)
#endif
