// The MPI library below this one: its functions by their profiling names, PMPI_*.
//
// All are weak. So this library can be preloaded into programs without MPI, such as mpirun or a shell: it names
// functions that are not there, and nobody calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <tuple>
#include <type_traits>

#define UCXL_BELOW(name) extern "C" [[gnu::weak]] decltype(PMPI_##name) PMPI_##name
// A collective call, its nonblocking form and its persistent form.
#define UCXL_FORMS_BELOW(name, nonblocking, persistent)                                                                \
    UCXL_BELOW(name);                                                                                                  \
    UCXL_BELOW(nonblocking);                                                                                           \
    UCXL_BELOW(persistent)

// `c` ends the names of the calls with large counts.
#define UCXL_COLLECTIVES_BELOW(c)                                                                                      \
    UCXL_FORMS_BELOW(Allgather##c, Iallgather##c, Allgather_init##c);                                                  \
    UCXL_FORMS_BELOW(Allgatherv##c, Iallgatherv##c, Allgatherv_init##c);                                               \
    UCXL_FORMS_BELOW(Alltoall##c, Ialltoall##c, Alltoall_init##c);                                                     \
    UCXL_FORMS_BELOW(Alltoallv##c, Ialltoallv##c, Alltoallv_init##c);                                                  \
    UCXL_FORMS_BELOW(Alltoallw##c, Ialltoallw##c, Alltoallw_init##c);                                                  \
    UCXL_FORMS_BELOW(Bcast##c, Ibcast##c, Bcast_init##c);                                                              \
    UCXL_FORMS_BELOW(Gather##c, Igather##c, Gather_init##c);                                                           \
    UCXL_FORMS_BELOW(Gatherv##c, Igatherv##c, Gatherv_init##c);                                                        \
    UCXL_FORMS_BELOW(Neighbor_allgather##c, Ineighbor_allgather##c, Neighbor_allgather_init##c);                       \
    UCXL_FORMS_BELOW(Neighbor_allgatherv##c, Ineighbor_allgatherv##c, Neighbor_allgatherv_init##c);                    \
    UCXL_FORMS_BELOW(Neighbor_alltoall##c, Ineighbor_alltoall##c, Neighbor_alltoall_init##c);                          \
    UCXL_FORMS_BELOW(Neighbor_alltoallv##c, Ineighbor_alltoallv##c, Neighbor_alltoallv_init##c);                       \
    UCXL_FORMS_BELOW(Neighbor_alltoallw##c, Ineighbor_alltoallw##c, Neighbor_alltoallw_init##c);                       \
    UCXL_FORMS_BELOW(Scatter##c, Iscatter##c, Scatter_init##c);                                                        \
    UCXL_FORMS_BELOW(Scatterv##c, Iscatterv##c, Scatterv_init##c)

UCXL_COLLECTIVES_BELOW();

UCXL_BELOW(Accumulate);
UCXL_BELOW(Bsend);
UCXL_BELOW(Bsend_init);
UCXL_BELOW(Cart_shift);
UCXL_BELOW(Cartdim_get);
UCXL_BELOW(Comm_rank);
UCXL_BELOW(Comm_remote_size);
UCXL_BELOW(Comm_size);
UCXL_BELOW(Comm_test_inter);
UCXL_BELOW(Dist_graph_neighbors_count);
UCXL_BELOW(Finalize);
UCXL_BELOW(Get);
UCXL_BELOW(Get_accumulate);
UCXL_BELOW(Get_library_version);
UCXL_BELOW(Graph_neighbors_count);
UCXL_BELOW(Ibsend);
UCXL_BELOW(Improbe);
UCXL_BELOW(Imrecv);
UCXL_BELOW(Init);
UCXL_BELOW(Init_thread);
UCXL_BELOW(Initialized);
UCXL_BELOW(Irecv);
UCXL_BELOW(Irsend);
UCXL_BELOW(Isend);
UCXL_BELOW(Isendrecv);
UCXL_BELOW(Isendrecv_replace);
UCXL_BELOW(Issend);
UCXL_BELOW(Mprobe);
UCXL_BELOW(Mrecv);
UCXL_BELOW(Pack);
UCXL_BELOW(Parrived);
UCXL_BELOW(Pready);
UCXL_BELOW(Pready_list);
UCXL_BELOW(Pready_range);
UCXL_BELOW(Precv_init);
UCXL_BELOW(Psend_init);
UCXL_BELOW(Put);
UCXL_BELOW(Query_thread);
UCXL_BELOW(Raccumulate);
UCXL_BELOW(Recv);
UCXL_BELOW(Recv_init);
UCXL_BELOW(Request_free);
UCXL_BELOW(Request_get_status);
UCXL_BELOW(Rget);
UCXL_BELOW(Rget_accumulate);
UCXL_BELOW(Rput);
UCXL_BELOW(Rsend);
UCXL_BELOW(Rsend_init);
UCXL_BELOW(Send);
UCXL_BELOW(Send_init);
UCXL_BELOW(Sendrecv);
UCXL_BELOW(Sendrecv_replace);
UCXL_BELOW(Session_finalize);
UCXL_BELOW(Session_init);
UCXL_BELOW(Ssend);
UCXL_BELOW(Ssend_init);
UCXL_BELOW(Start);
UCXL_BELOW(Startall);
UCXL_BELOW(Test);
UCXL_BELOW(Testall);
UCXL_BELOW(Testany);
UCXL_BELOW(Testsome);
UCXL_BELOW(Topo_test);
UCXL_BELOW(Type_commit);
UCXL_BELOW(Type_contiguous);
UCXL_BELOW(Type_create_darray);
UCXL_BELOW(Type_create_keyval);
UCXL_BELOW(Type_dup);
UCXL_BELOW(Type_free);
UCXL_BELOW(Type_free_keyval);
UCXL_BELOW(Type_get_contents);
UCXL_BELOW(Type_get_envelope);
UCXL_BELOW(Type_get_extent_x);
UCXL_BELOW(Type_get_name);
UCXL_BELOW(Type_get_true_extent_x);
UCXL_BELOW(Type_set_attr);
UCXL_BELOW(Type_size_x);
UCXL_BELOW(Type_vector);
UCXL_BELOW(Unpack);
UCXL_BELOW(Wait);
UCXL_BELOW(Waitall);
UCXL_BELOW(Waitany);
UCXL_BELOW(Waitsome);
UCXL_BELOW(Win_complete);
UCXL_BELOW(Win_fence);
UCXL_BELOW(Win_flush);
UCXL_BELOW(Win_flush_all);
UCXL_BELOW(Win_flush_local);
UCXL_BELOW(Win_flush_local_all);
UCXL_BELOW(Win_free);
UCXL_BELOW(Win_get_attr);
UCXL_BELOW(Win_unlock);
UCXL_BELOW(Win_unlock_all);

// Counts of any size came with MPI 4.
#if MPI_VERSION >= 4
#define UCXL_LARGE_COUNTS 1
UCXL_COLLECTIVES_BELOW(_c);

UCXL_BELOW(Accumulate_c);
UCXL_BELOW(Bsend_c);
UCXL_BELOW(Bsend_init_c);
UCXL_BELOW(Get_accumulate_c);
UCXL_BELOW(Get_c);
UCXL_BELOW(Ibsend_c);
UCXL_BELOW(Imrecv_c);
UCXL_BELOW(Irecv_c);
UCXL_BELOW(Irsend_c);
UCXL_BELOW(Isend_c);
UCXL_BELOW(Isendrecv_c);
UCXL_BELOW(Isendrecv_replace_c);
UCXL_BELOW(Issend_c);
UCXL_BELOW(Mrecv_c);
UCXL_BELOW(Pack_c);
UCXL_BELOW(Put_c);
UCXL_BELOW(Raccumulate_c);
UCXL_BELOW(Recv_c);
UCXL_BELOW(Recv_init_c);
UCXL_BELOW(Rget_accumulate_c);
UCXL_BELOW(Rget_c);
UCXL_BELOW(Rput_c);
UCXL_BELOW(Rsend_c);
UCXL_BELOW(Rsend_init_c);
UCXL_BELOW(Send_c);
UCXL_BELOW(Send_init_c);
UCXL_BELOW(Sendrecv_c);
UCXL_BELOW(Sendrecv_replace_c);
UCXL_BELOW(Ssend_c);
UCXL_BELOW(Ssend_init_c);
UCXL_BELOW(Type_get_contents_c);
UCXL_BELOW(Type_get_envelope_c);
UCXL_BELOW(Unpack_c);
#else
#define UCXL_LARGE_COUNTS 0
#endif

// Requests of which some or all are asked at once came with MPI 4.1.
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define UCXL_STATUS_OF_MANY 1
UCXL_BELOW(Request_get_status_all);
UCXL_BELOW(Request_get_status_any);
UCXL_BELOW(Request_get_status_some);
#else
#define UCXL_STATUS_OF_MANY 0
#endif

// The standard ABI of MPI 5, whose handles are the same in all MPIs that have it. Another mpi.h of MPI 5 says -1, or
// nothing.
#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0
#define UCXL_STANDARD_ABI 1
UCXL_BELOW(Abi_get_version);
#else
#define UCXL_STANDARD_ABI 0
#endif

#ifdef OPEN_MPI
// Handles of Open MPI are addresses of its objects.
extern "C" [[gnu::weak]] decltype(ompi_message_no_proc) ompi_message_no_proc;
extern "C" [[gnu::weak]] decltype(ompi_message_null) ompi_message_null;
extern "C" [[gnu::weak]] decltype(ompi_mpi_byte) ompi_mpi_byte;
extern "C" [[gnu::weak]] decltype(ompi_mpi_comm_null) ompi_mpi_comm_null;
extern "C" [[gnu::weak]] decltype(ompi_mpi_comm_self) ompi_mpi_comm_self;
extern "C" [[gnu::weak]] decltype(ompi_mpi_comm_world) ompi_mpi_comm_world;
extern "C" [[gnu::weak]] decltype(ompi_mpi_datatype_null) ompi_mpi_datatype_null;
extern "C" [[gnu::weak]] decltype(ompi_mpi_short_int) ompi_mpi_short_int;
extern "C" [[gnu::weak]] decltype(ompi_mpi_op_no_op) ompi_mpi_op_no_op;
extern "C" [[gnu::weak]] decltype(ompi_mpi_win_null) ompi_mpi_win_null;
extern "C" [[gnu::weak]] decltype(ompi_request_null) ompi_request_null;
extern "C" [[gnu::weak]] decltype(OMPI_C_MPI_TYPE_NULL_COPY_FN) OMPI_C_MPI_TYPE_NULL_COPY_FN;
#endif

namespace ucxl::mpi
{

// Handles are addresses in some MPIs and numbers in others.
template <typename Handle>
std::uintptr_t number_of(Handle handle)
{
    if constexpr (std::is_pointer_v<Handle>) {
        return reinterpret_cast<std::uintptr_t>(handle);
    } else {
        return static_cast<unsigned>(handle);
    }
}

// The type of a parameter, which is const in newer releases of an MPI.
template <std::size_t index, typename... Parameters>
std::tuple_element_t<index, std::tuple<Parameters...>> parameter(int (*function)(Parameters...));

} // namespace ucxl::mpi
#define UCXL_PARAMETER(index, name) decltype(ucxl::mpi::parameter<index>(&PMPI_##name))

#undef UCXL_FORMS_BELOW
#undef UCXL_BELOW
