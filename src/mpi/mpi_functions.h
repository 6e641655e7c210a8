// The functions of MPI by name: those that this library stands before, and those that it only calls.
//
// Each of the first has three addresses, in a table (call_table.h) that is filled when the program first calls MPI:
//   MPI_Send        what the program calls: own_MPI_Send(), or next_MPI_Send() where the library stays out
//   next_MPI_Send   where calls of the program go on: the next library in the search order, another tool or MPI
//   PMPI_Send       MPI itself, for what this library wants to know
// So the library can be preloaded into any program: it needs no MPI, and finds the one that the program calls also
// where that is loaded with RTLD_LOCAL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <tuple>
#include <type_traits>

// Counts of any size came with MPI 4, requests of which some or all are asked at once with MPI 4.1.
#define UCXL_LARGE_COUNTS (MPI_VERSION >= 4)
#define UCXL_STATUS_OF_MANY (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))

// The standard ABI of MPI 5, whose handles are the same in all MPIs that have it. Another mpi.h of MPI 5 says -1, or
// nothing.
#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0
#define UCXL_STANDARD_ABI 1
#else
#define UCXL_STANDARD_ABI 0
#endif

// DO(name, what its call must be followed by, what it ends or completes), see call_table.h. `c` ends the names of the
// calls with large counts.
// clang-format off: it takes these lists for code.
#define UCXL_CALLS_WITH_COUNTS(DO, c)                                                                                  \
    DO(Allgather##c, nothing, nothing) DO(Iallgather##c, requests, nothing) DO(Allgather_init##c, requests, nothing)   \
    DO(Allgatherv##c, nothing, nothing) DO(Iallgatherv##c, requests, nothing)                                          \
    DO(Allgatherv_init##c, requests, nothing) DO(Alltoall##c, nothing, nothing) DO(Ialltoall##c, requests, nothing)    \
    DO(Alltoall_init##c, requests, nothing) DO(Alltoallv##c, nothing, nothing) DO(Ialltoallv##c, requests, nothing)    \
    DO(Alltoallv_init##c, requests, nothing) DO(Alltoallw##c, nothing, nothing) DO(Ialltoallw##c, requests, nothing)   \
    DO(Alltoallw_init##c, requests, nothing) DO(Bcast##c, nothing, nothing) DO(Ibcast##c, requests, nothing)           \
    DO(Bcast_init##c, requests, nothing) DO(Gather##c, nothing, nothing) DO(Igather##c, requests, nothing)             \
    DO(Gather_init##c, requests, nothing) DO(Gatherv##c, nothing, nothing) DO(Igatherv##c, requests, nothing)          \
    DO(Gatherv_init##c, requests, nothing) DO(Neighbor_allgather##c, nothing, nothing)                                 \
    DO(Ineighbor_allgather##c, requests, nothing) DO(Neighbor_allgather_init##c, requests, nothing)                    \
    DO(Neighbor_allgatherv##c, nothing, nothing) DO(Ineighbor_allgatherv##c, requests, nothing)                        \
    DO(Neighbor_allgatherv_init##c, requests, nothing) DO(Neighbor_alltoall##c, nothing, nothing)                      \
    DO(Ineighbor_alltoall##c, requests, nothing) DO(Neighbor_alltoall_init##c, requests, nothing)                      \
    DO(Neighbor_alltoallv##c, nothing, nothing) DO(Ineighbor_alltoallv##c, requests, nothing)                          \
    DO(Neighbor_alltoallv_init##c, requests, nothing) DO(Neighbor_alltoallw##c, nothing, nothing)                      \
    DO(Ineighbor_alltoallw##c, requests, nothing) DO(Neighbor_alltoallw_init##c, requests, nothing)                    \
    DO(Scatter##c, nothing, nothing) DO(Iscatter##c, requests, nothing) DO(Scatter_init##c, requests, nothing)         \
    DO(Scatterv##c, nothing, nothing) DO(Iscatterv##c, requests, nothing) DO(Scatterv_init##c, requests, nothing)      \
    DO(Send##c, nothing, nothing) DO(Isend##c, requests, nothing) DO(Send_init##c, requests, nothing)                  \
    DO(Ssend##c, nothing, nothing) DO(Issend##c, requests, nothing) DO(Ssend_init##c, requests, nothing)               \
    DO(Rsend##c, nothing, nothing) DO(Irsend##c, requests, nothing) DO(Rsend_init##c, requests, nothing)               \
    DO(Bsend##c, nothing, nothing) DO(Ibsend##c, requests, nothing) DO(Bsend_init##c, requests, nothing)               \
    DO(Recv##c, nothing, nothing) DO(Irecv##c, requests, nothing) DO(Recv_init##c, requests, nothing)                  \
    DO(Mrecv##c, probes, nothing) DO(Imrecv##c, requests | probes, nothing) DO(Sendrecv##c, nothing, nothing)          \
    DO(Sendrecv_replace##c, nothing, nothing) DO(Isendrecv##c, requests, nothing)                                      \
    DO(Isendrecv_replace##c, requests, nothing) DO(Pack##c, nothing, nothing) DO(Unpack##c, nothing, nothing)          \
    DO(Put##c, epochs, nothing) DO(Rput##c, epochs | requests, nothing) DO(Get##c, epochs, nothing)                    \
    DO(Rget##c, epochs | requests, nothing) DO(Accumulate##c, epochs, nothing)                                         \
    DO(Raccumulate##c, epochs | requests, nothing) DO(Get_accumulate##c, epochs, nothing)                              \
    DO(Rget_accumulate##c, epochs | requests, nothing) DO(Win_create##c, epochs, nothing)                      \
    DO(Win_allocate##c, epochs, nothing)

#define UCXL_CALLS_WITHOUT_COUNTS(DO)                                                                                  \
    DO(Init, start_of_mpi, nothing) DO(Init_thread, start_of_mpi, nothing) DO(Finalize, start_of_mpi, nothing)         \
    DO(Session_init, start_of_mpi, nothing) DO(Session_finalize, start_of_mpi, nothing)                                \
    DO(Type_commit, nothing, nothing) DO(Type_dup, nothing, nothing) DO(Type_free, nothing, nothing)                   \
    DO(Mprobe, nothing, probes) DO(Improbe, nothing, probes) DO(Psend_init, requests | partitions, nothing)            \
    DO(Precv_init, requests | partitions, nothing) DO(Pready, nothing, partitions)                                     \
    DO(Pready_list, nothing, partitions) DO(Pready_range, nothing, partitions) DO(Parrived, nothing, partitions)       \
    DO(Start, nothing, requests) DO(Startall, nothing, requests) DO(Wait, nothing, requests)                           \
    DO(Waitall, nothing, requests) DO(Waitany, nothing, requests) DO(Waitsome, nothing, requests)                      \
    DO(Test, nothing, requests) DO(Testall, nothing, requests) DO(Testany, nothing, requests)                          \
    DO(Testsome, nothing, requests) DO(Request_free, nothing, requests) DO(Request_get_status, nothing, requests)      \
    DO(Win_complete, nothing, epochs) DO(Win_fence, nothing, epochs) DO(Win_flush, nothing, epochs)                    \
    DO(Win_flush_all, nothing, epochs) DO(Win_flush_local, nothing, epochs) DO(Win_flush_local_all, nothing, epochs)   \
    DO(Win_unlock, nothing, epochs) DO(Win_unlock_all, nothing, epochs) DO(Win_free, nothing, epochs)
// clang-format on

#if UCXL_LARGE_COUNTS
#define UCXL_CALLS_WITH_LARGE_COUNTS(DO) UCXL_CALLS_WITH_COUNTS(DO, _c)
#define UCXL_QUERIES_WITH_LARGE_COUNTS(DO) DO(Type_get_contents_c) DO(Type_get_envelope_c)
#else
#define UCXL_CALLS_WITH_LARGE_COUNTS(DO)
#define UCXL_QUERIES_WITH_LARGE_COUNTS(DO)
#endif

// clang-format off
#if UCXL_STATUS_OF_MANY
#define UCXL_CALLS_OF_STATUS(DO)                                                                                       \
    DO(Request_get_status_all, nothing, requests) DO(Request_get_status_any, nothing, requests)                        \
    DO(Request_get_status_some, nothing, requests)
#else
#define UCXL_CALLS_OF_STATUS(DO)
#endif
// clang-format on

#if UCXL_STANDARD_ABI
#define UCXL_QUERIES_OF_ABI(DO) DO(Abi_get_version)
#else
#define UCXL_QUERIES_OF_ABI(DO)
#endif

// clang-format off
#define UCXL_FOR_EACH_MPI_CALL(DO)                                                                                     \
    UCXL_CALLS_WITH_COUNTS(DO, ) UCXL_CALLS_WITH_LARGE_COUNTS(DO) UCXL_CALLS_WITHOUT_COUNTS(DO)                        \
    UCXL_CALLS_OF_STATUS(DO)

// Only called.
#define UCXL_FOR_EACH_MPI_QUERY(DO)                                                                                    \
    DO(Cart_shift) DO(Cartdim_get) DO(Comm_create_keyval) DO(Comm_free_keyval) DO(Comm_get_errhandler) DO(Comm_group)  \
    DO(Comm_rank) DO(Comm_remote_size) DO(Comm_set_attr) DO(Comm_set_errhandler) DO(Comm_size) DO(Comm_test_inter)     \
    DO(Dist_graph_neighbors) DO(Dist_graph_neighbors_count) DO(Errhandler_free) DO(Error_class) DO(Finalized)          \
    DO(Get_library_version) DO(Graph_neighbors) DO(Graph_neighbors_count) DO(Group_free) DO(Group_translate_ranks)     \
    DO(Initialized) DO(Query_thread) DO(T_cvar_get_index) DO(T_cvar_handle_alloc) DO(T_cvar_handle_free)               \
    DO(T_cvar_read) DO(T_finalize) DO(T_init_thread) DO(Topo_test) DO(Type_contiguous) DO(Type_create_darray)          \
    DO(Type_create_keyval) DO(Type_free_keyval) DO(Type_get_contents) DO(Type_get_envelope) DO(Type_get_extent_x)      \
    DO(Type_get_name) DO(Type_get_true_extent_x) DO(Type_set_attr) DO(Type_size_x) DO(Type_vector)                     \
    DO(Win_create_keyval) DO(Win_free_keyval) DO(Win_get_attr) DO(Win_get_errhandler) DO(Win_set_attr)                 \
    UCXL_QUERIES_WITH_LARGE_COUNTS(DO) UCXL_QUERIES_OF_ABI(DO)
// clang-format on

#define UCXL_DECLARE_CALL(name, needs, ends)                                                                           \
    extern "C" [[gnu::visibility("hidden")]] decltype(PMPI_##name) own_MPI_##name, next_MPI_##name;
UCXL_FOR_EACH_MPI_CALL(UCXL_DECLARE_CALL)
#undef UCXL_DECLARE_CALL

// Becomes part of the call, which then is a look into the table and a jump where a datatype is left to MPI.
#define UCXL_MPI_FAST [[gnu::always_inline]] inline

namespace ucxl::mpi
{

// Handles are addresses in some MPIs and numbers in others.
template <typename Handle>
std::uintptr_t number_of(Handle handle)
{
    if constexpr (std::is_pointer_v<Handle>) {
        return reinterpret_cast<std::uintptr_t>(handle);
    } else {
        return static_cast<std::make_unsigned_t<Handle>>(handle);
    }
}

// The type of a parameter, which is const in newer releases of an MPI.
template <std::size_t index, typename... Parameters>
std::tuple_element_t<index, std::tuple<Parameters...>> parameter(int (*function)(Parameters...));

#ifdef OPEN_MPI
// Handles of Open MPI are addresses of its objects. They are found with its functions.
struct openmpi_handles {
    MPI_Comm null_comm = nullptr, self = nullptr, world = nullptr;
    MPI_Datatype null_type = nullptr, byte = nullptr, short_int = nullptr;
    MPI_Errhandler fatal_errors = nullptr;
    MPI_Message null_message = nullptr, no_proc_message = nullptr;
    MPI_Op no_op             = nullptr;
    MPI_Request null_request = nullptr;
    MPI_Session null_session = nullptr;
    MPI_Win null_win         = nullptr;
};
extern openmpi_handles handles_below;
#endif

} // namespace ucxl::mpi
#define UCXL_PARAMETER(index, name) decltype(ucxl::mpi::parameter<index>(&PMPI_##name))

#ifdef OPEN_MPI
#undef MPI_BYTE
#undef MPI_COMM_NULL
#undef MPI_COMM_SELF
#undef MPI_COMM_WORLD
#undef MPI_DATATYPE_NULL
#undef MPI_ERRORS_ARE_FATAL
#undef MPI_MESSAGE_NO_PROC
#undef MPI_MESSAGE_NULL
#undef MPI_NO_OP
#undef MPI_REQUEST_NULL
#undef MPI_SESSION_NULL
#undef MPI_SHORT_INT
#undef MPI_WIN_NULL
#define MPI_BYTE (ucxl::mpi::handles_below.byte)
#define MPI_COMM_NULL (ucxl::mpi::handles_below.null_comm)
#define MPI_COMM_SELF (ucxl::mpi::handles_below.self)
#define MPI_COMM_WORLD (ucxl::mpi::handles_below.world)
#define MPI_DATATYPE_NULL (ucxl::mpi::handles_below.null_type)
#define MPI_ERRORS_ARE_FATAL (ucxl::mpi::handles_below.fatal_errors)
#define MPI_MESSAGE_NO_PROC (ucxl::mpi::handles_below.no_proc_message)
#define MPI_MESSAGE_NULL (ucxl::mpi::handles_below.null_message)
#define MPI_NO_OP (ucxl::mpi::handles_below.no_op)
#define MPI_REQUEST_NULL (ucxl::mpi::handles_below.null_request)
#define MPI_SESSION_NULL (ucxl::mpi::handles_below.null_session)
#define MPI_SHORT_INT (ucxl::mpi::handles_below.short_int)
#define MPI_WIN_NULL (ucxl::mpi::handles_below.null_win)
#endif
