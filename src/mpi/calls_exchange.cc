// Sends and receives of one call.
#include "call.h"
#include "packed_side.h"
#include "requests.h"

#include <new>
#include <optional>

namespace
{

using namespace ucxl::mpi;

template <typename Count>
struct side {
    void* buffer;
    Count count;
    MPI_Datatype type;
    int peer;
    int tag;
};

template <typename Next, typename Count>
int exchange(Next* next, side<Count> sent, side<Count> received, MPI_Comm comm, MPI_Status* status)
{
    const window_use from = borrow(sent.buffer, sent.count, sent.type, comm, direction::send);
    const window_use into = borrow(received.buffer, received.count, received.type, comm, direction::receive);
    if (from) {
        sent.buffer = from.address();
        sent.type   = from.packed_type();
    }
    if (into) {
        received.buffer = into.address();
        received.type   = into.packed_type();
    }
    return next(sent.buffer, sent.count, sent.type, sent.peer, sent.tag, received.buffer, received.count, received.type,
                received.peer, received.tag, comm, status);
}

// MPI packs what it sends, with the CPU, to make room for what it receives. So it is packed here.
template <typename Next, typename Exchange, typename Count>
int replace(Next* next, Exchange* by, void* buffer, Count count, MPI_Datatype type, int destination, int send_tag,
            int source, int receive_tag, MPI_Comm comm, MPI_Status* status)
{
    const window_use into = borrow(buffer, count, type, comm, direction::receive);
    std::optional<packed_side> packed;
    if (into) {
        packed = packed_side::of(buffer, count, type, direction::send);
    }
    if (!packed) {
        return next(buffer, count, type, destination, send_tag, source, receive_tag, comm, status);
    }
    packed->pack();
    return by(packed->data(), count, packed->type(0), destination, send_tag, into.address(), count, into.packed_type(),
              source, receive_tag, comm, status);
}

template <typename Next, typename Count>
int start_exchange(Next* next, side<Count> sent, side<Count> received, MPI_Comm comm, MPI_Request* request)
{
    window_use from = borrow(sent.buffer, sent.count, sent.type, comm, direction::send);
    window_use into = borrow(received.buffer, received.count, received.type, comm, direction::receive);
    held_ptr things(from || into ? new (std::nothrow) held : nullptr);
    if (things != nullptr && from) {
        sent.buffer = from.address();
        sent.type   = from.packed_type();
    }
    if (things != nullptr && into) {
        received.buffer = into.address();
        received.type   = into.packed_type();
    }
    const int result = next(sent.buffer, sent.count, sent.type, sent.peer, sent.tag, received.buffer, received.count,
                            received.type, received.peer, received.tag, comm, request);
    if (result == MPI_SUCCESS && things != nullptr) {
        things->windows[0] = std::move(from);
        things->windows[1] = std::move(into);
        requests::hold(*request, std::move(things));
    }
    return result;
}

} // namespace

UCXL_MPI_CALL MPI_Sendrecv(const void* send_buffer, int send_count, MPI_Datatype send_type, int destination,
                           int send_tag, void* receive_buffer, int receive_count, MPI_Datatype receive_type, int source,
                           int receive_tag, MPI_Comm comm, MPI_Status* status)
{
    if (find_known(send_type) == nullptr && find_known(receive_type) == nullptr) [[likely]] {
        return PMPI_Sendrecv(send_buffer, send_count, send_type, destination, send_tag, receive_buffer, receive_count,
                             receive_type, source, receive_tag, comm, status);
    }
    return exchange(PMPI_Sendrecv, side{const_cast<void*>(send_buffer), send_count, send_type, destination, send_tag},
                    side{receive_buffer, receive_count, receive_type, source, receive_tag}, comm, status);
}

UCXL_MPI_CALL MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int destination, int send_tag,
                                   int source, int receive_tag, MPI_Comm comm, MPI_Status* status)
{
    if (find_known(type) == nullptr) [[likely]] {
        return PMPI_Sendrecv_replace(buffer, count, type, destination, send_tag, source, receive_tag, comm, status);
    }
    return replace(PMPI_Sendrecv_replace, PMPI_Sendrecv, buffer, count, type, destination, send_tag, source,
                   receive_tag, comm, status);
}

UCXL_MPI_CALL MPI_Isendrecv(const void* send_buffer, int send_count, MPI_Datatype send_type, int destination,
                            int send_tag, void* receive_buffer, int receive_count, MPI_Datatype receive_type,
                            int source, int receive_tag, MPI_Comm comm, MPI_Request* request)
{
    if (find_known(send_type) == nullptr && find_known(receive_type) == nullptr) [[likely]] {
        return PMPI_Isendrecv(send_buffer, send_count, send_type, destination, send_tag, receive_buffer, receive_count,
                              receive_type, source, receive_tag, comm, request);
    }
    return start_exchange(PMPI_Isendrecv,
                          side{const_cast<void*>(send_buffer), send_count, send_type, destination, send_tag},
                          side{receive_buffer, receive_count, receive_type, source, receive_tag}, comm, request);
}

#if UCXL_LARGE_COUNTS
UCXL_MPI_CALL MPI_Sendrecv_c(const void* send_buffer, MPI_Count send_count, MPI_Datatype send_type, int destination,
                             int send_tag, void* receive_buffer, MPI_Count receive_count, MPI_Datatype receive_type,
                             int source, int receive_tag, MPI_Comm comm, MPI_Status* status)
{
    if (find_known(send_type) == nullptr && find_known(receive_type) == nullptr) [[likely]] {
        return PMPI_Sendrecv_c(send_buffer, send_count, send_type, destination, send_tag, receive_buffer, receive_count,
                               receive_type, source, receive_tag, comm, status);
    }
    return exchange(PMPI_Sendrecv_c, side{const_cast<void*>(send_buffer), send_count, send_type, destination, send_tag},
                    side{receive_buffer, receive_count, receive_type, source, receive_tag}, comm, status);
}

UCXL_MPI_CALL MPI_Sendrecv_replace_c(void* buffer, MPI_Count count, MPI_Datatype type, int destination, int send_tag,
                                     int source, int receive_tag, MPI_Comm comm, MPI_Status* status)
{
    if (find_known(type) == nullptr) [[likely]] {
        return PMPI_Sendrecv_replace_c(buffer, count, type, destination, send_tag, source, receive_tag, comm, status);
    }
    return replace(PMPI_Sendrecv_replace_c, PMPI_Sendrecv_c, buffer, count, type, destination, send_tag, source,
                   receive_tag, comm, status);
}

UCXL_MPI_CALL MPI_Isendrecv_c(const void* send_buffer, MPI_Count send_count, MPI_Datatype send_type, int destination,
                              int send_tag, void* receive_buffer, MPI_Count receive_count, MPI_Datatype receive_type,
                              int source, int receive_tag, MPI_Comm comm, MPI_Request* request)
{
    if (find_known(send_type) == nullptr && find_known(receive_type) == nullptr) [[likely]] {
        return PMPI_Isendrecv_c(send_buffer, send_count, send_type, destination, send_tag, receive_buffer,
                                receive_count, receive_type, source, receive_tag, comm, request);
    }
    return start_exchange(PMPI_Isendrecv_c,
                          side{const_cast<void*>(send_buffer), send_count, send_type, destination, send_tag},
                          side{receive_buffer, receive_count, receive_type, source, receive_tag}, comm, request);
}

#endif
