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
    const window_use window = destination == MPI_PROC_NULL ? window_use() : side.borrow(comm, direction::send);
    return std::apply(next, std::tuple_cat(side.arguments(window), std::tuple(destination, tag, comm)));
}

template <typename Next, typename Count>
UCXL_MPI_FAST int send(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                       MPI_Comm comm)
{
    return is_left_to_mpi(type, count) ? next(buffer, count, type, destination, tag, comm)
                                       : send_taken(next, buffer, count, type, destination, tag, comm);
}

template <typename Next, typename Count>
[[gnu::noinline]] int start_send_taken(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination,
                                       int tag, MPI_Comm comm, MPI_Request* request)
{
    const message_side side{buffer, count, type};
    if (destination == MPI_PROC_NULL) {
        return next(buffer, count, type, destination, tag, comm, request);
    }
    return start_on({side.borrow(comm, direction::send)}, true, request, [&](const held_windows& windows) {
        return std::apply(next,
                          std::tuple_cat(side.arguments(windows[0]), std::tuple(destination, tag, comm, request)));
    });
}

// Also of a persistent request, which uses the same window whenever it starts.
template <typename Next, typename Count>
UCXL_MPI_FAST int start_send(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                             MPI_Comm comm, MPI_Request* request)
{
    return is_left_to_mpi(type, count) ? next(buffer, count, type, destination, tag, comm, request)
                                       : start_send_taken(next, buffer, count, type, destination, tag, comm, request);
}

// MPI copies the message into the buffer that the program attached, with the CPU. So it gets packed bytes.
template <typename Next, typename Count>
int send_buffered(Next* next, const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                  MPI_Comm comm)
{
    const auto packed = destination == MPI_PROC_NULL || find_used(type, count) == nullptr
                            ? std::nullopt
                            : packed_side::of(buffer, count, type, direction::send);
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
    if (destination == MPI_PROC_NULL || find_used(type, count) == nullptr) [[likely]] {
        return next(buffer, count, type, destination, tag, comm, request);
    }
    auto things = hold_packed(packed_side::of(buffer, count, type, direction::send));
    if (things == nullptr) {
        return next(buffer, count, type, destination, tag, comm, request);
    }
    things->is_persistent = is_persistent;
    things->is_message    = true;
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

// A send, its nonblocking form and its persistent form.
#define UCXL_SENDS_OF_MODE(name, nonblocking_name, persistent_name, Count)                                             \
    UCXL_MPI_CALL own_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int destination, int tag,         \
                                 MPI_Comm comm)                                                                        \
    {                                                                                                                  \
        return send(next_MPI_##name, buffer, count, type, destination, tag, comm);                                     \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_##nonblocking_name(const void* buffer, Count count, MPI_Datatype type, int destination,      \
                                             int tag, MPI_Comm comm, MPI_Request* request)                             \
    {                                                                                                                  \
        return start_send(next_MPI_##nonblocking_name, buffer, count, type, destination, tag, comm, request);          \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_##persistent_name(const void* buffer, Count count, MPI_Datatype type, int destination,       \
                                            int tag, MPI_Comm comm, MPI_Request* request)                              \
    {                                                                                                                  \
        note_persistent(type, count);                                                                                  \
        return start_send(next_MPI_##persistent_name, buffer, count, type, destination, tag, comm, request);           \
    }

// `c` ends the names of the calls with large counts.
#define UCXL_SENDS(c, Count)                                                                                           \
    UCXL_SENDS_OF_MODE(Send##c, Isend##c, Send_init##c, Count)                                                         \
    UCXL_SENDS_OF_MODE(Ssend##c, Issend##c, Ssend_init##c, Count)                                                      \
    UCXL_SENDS_OF_MODE(Rsend##c, Irsend##c, Rsend_init##c, Count)                                                      \
    UCXL_MPI_CALL own_MPI_Bsend##c(const void* buffer, Count count, MPI_Datatype type, int destination, int tag,       \
                                   MPI_Comm comm)                                                                      \
    {                                                                                                                  \
        return send_buffered(next_MPI_Bsend##c, buffer, count, type, destination, tag, comm);                          \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Ibsend##c(const void* buffer, Count count, MPI_Datatype type, int destination, int tag,      \
                                    MPI_Comm comm, MPI_Request* request)                                               \
    {                                                                                                                  \
        return start_send_buffered(next_MPI_Ibsend##c, false, buffer, count, type, destination, tag, comm, request);   \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Bsend_init##c(const void* buffer, Count count, MPI_Datatype type, int destination, int tag,  \
                                        MPI_Comm comm, MPI_Request* request)                                           \
    {                                                                                                                  \
        note_persistent(type, count);                                                                                  \
        return start_send_buffered(next_MPI_Bsend_init##c, true, buffer, count, type, destination, tag, comm,          \
                                   request);                                                                           \
    }

UCXL_SENDS(, int)
#if UCXL_LARGE_COUNTS
UCXL_SENDS(_c, MPI_Count)
#endif
