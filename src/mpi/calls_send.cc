// Sends: from a window over the caller's buffer, if its datatype is worth one.
#include "packed_side.h"
#include "start_call.h"

#include <tuple>

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Count>
[[gnu::noinline]] int send_taken(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination,
                                 int tag, MPI_Comm comm)
{
    const message_side side{buffer, count, type};
    const window_use window = side.borrow(comm, direction::send);
    return std::apply(next, std::tuple_cat(side.arguments(window), std::tuple(destination, tag, comm)));
}

template <typename Next, typename Count>
UCXL_MPI_FAST int send(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                       MPI_Comm comm)
{
    return find_taken(type, count) == nullptr ? next(buffer, count, type, destination, tag, comm)
                                              : send_taken(next, buffer, count, type, destination, tag, comm);
}

template <typename Next, typename Count>
[[gnu::noinline]] int start_send_taken(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination,
                                       int tag, MPI_Comm comm, MPI_Request* request)
{
    const message_side side{buffer, count, type};
    return start_on({side.borrow(comm, direction::send)}, request, [&](const held_windows& windows) {
        return std::apply(next,
                          std::tuple_cat(side.arguments(windows[0]), std::tuple(destination, tag, comm, request)));
    });
}

// Also the calls that make a persistent request, which uses the same window whenever it starts.
template <typename Next, typename Count>
UCXL_MPI_FAST int start_send(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                             MPI_Comm comm, MPI_Request* request)
{
    return find_taken(type, count) == nullptr
               ? next(buffer, count, type, destination, tag, comm, request)
               : start_send_taken(next, buffer, count, type, destination, tag, comm, request);
}

// MPI copies the message into the buffer that the program attached, with the CPU. So it gets packed bytes.
template <typename Next, typename Count>
int send_buffered(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                  MPI_Comm comm)
{
    const auto packed = packed_side::of(buffer, count, type, direction::send);
    if (!packed) {
        return next(buffer, count, type, destination, tag, comm);
    }
    packed->pack();
    return next(packed->data(), count, packed->type(0), destination, tag, comm);
}

// A persistent request copies anew whenever it starts.
template <typename Next, typename Count>
int start_send_buffered(Next* next, bool is_persistent, const void* buffer, Count count, MPI_Datatype type,
                        int destination, int tag, MPI_Comm comm, MPI_Request* request)
{
    if (find_known(type) == nullptr) [[likely]] {
        return next(buffer, count, type, destination, tag, comm, request);
    }
    auto things = hold_packed(packed_side::of(buffer, count, type, direction::send));
    if (things == nullptr) {
        return next(buffer, count, type, destination, tag, comm, request);
    }
    things->is_persistent = is_persistent;
    if (!is_persistent) {
        things->begin();
    }
    const int result = next(things->side().data(), count, things->side().type(0), destination, tag, comm, request);
    if (result == MPI_SUCCESS) {
        requests::hold(*request, std::move(things));
    }
    return result;
}

} // namespace

UCXL_MPI_CALL MPI_Send(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm)
{
    return send(PMPI_Send, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm)
{
    return send(PMPI_Ssend, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Rsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm)
{
    return send(PMPI_Rsend, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Bsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm)
{
    return send_buffered(PMPI_Bsend, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                         MPI_Request* request)
{
    return start_send_buffered(PMPI_Ibsend, false, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Bsend_init(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                             MPI_Request* request)
{
    return start_send_buffered(PMPI_Bsend_init, true, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Isend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                        MPI_Request* request)
{
    return start_send(PMPI_Isend, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Issend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                         MPI_Request* request)
{
    return start_send(PMPI_Issend, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Irsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                         MPI_Request* request)
{
    return start_send(PMPI_Irsend, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                            MPI_Request* request)
{
    return start_send(PMPI_Send_init, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Ssend_init(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                             MPI_Request* request)
{
    return start_send(PMPI_Ssend_init, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Rsend_init(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
                             MPI_Request* request)
{
    return start_send(PMPI_Rsend_init, buffer, count, type, destination, tag, comm, request);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Send_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                         MPI_Comm comm)
{
    return send(PMPI_Send_c, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Ssend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                          MPI_Comm comm)
{
    return send(PMPI_Ssend_c, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Rsend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                          MPI_Comm comm)
{
    return send(PMPI_Rsend_c, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Bsend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                          MPI_Comm comm)
{
    return send_buffered(PMPI_Bsend_c, buffer, count, type, destination, tag, comm);
}

UCXL_MPI_CALL MPI_Ibsend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                           MPI_Comm comm, MPI_Request* request)
{
    return start_send_buffered(PMPI_Ibsend_c, false, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Bsend_init_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                               MPI_Comm comm, MPI_Request* request)
{
    return start_send_buffered(PMPI_Bsend_init_c, true, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Isend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                          MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Isend_c, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Issend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                           MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Issend_c, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Irsend_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                           MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Irsend_c, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Send_init_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                              MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Send_init_c, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Ssend_init_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                               MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Ssend_init_c, buffer, count, type, destination, tag, comm, request);
}

UCXL_MPI_CALL MPI_Rsend_init_c(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                               MPI_Comm comm, MPI_Request* request)
{
    return start_send(PMPI_Rsend_init_c, buffer, count, type, destination, tag, comm, request);
}

#endif
