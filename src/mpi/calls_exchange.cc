// Sends and receives of one call.
#include "start_call.h"

#include <optional>
#include <tuple>
#include <utility>

namespace
{

using namespace ucxl::mpi;

template <typename Count>
using sent_side = message_side<const void*, Count>;
template <typename Count>
using received_side = message_side<void*, Count>;

struct partner {
    int rank;
    int tag;

    std::tuple<int, int> arguments() const { return {rank, tag}; }
};

// All arguments of a call but the last one.
template <typename Count>
auto arguments_of(const sent_side<Count>& sent, partner to, const received_side<Count>& received, partner from,
                  MPI_Comm comm, const held_windows& windows)
{
    return std::tuple_cat(sent.arguments(windows[0]), to.arguments(), received.arguments(windows[1]), from.arguments(),
                          std::tuple(comm));
}

template <typename Count>
held_windows borrow_both(const sent_side<Count>& sent, const received_side<Count>& received, MPI_Comm comm)
{
    if (!sent.is_taken() && !received.is_taken()) [[likely]] {
        return {};
    }
    return {sent.borrow(comm, direction::send), received.borrow(comm, direction::receive)};
}

template <typename Next, typename Count>
int exchange(Next* next, sent_side<Count> sent, partner to, received_side<Count> received, partner from, MPI_Comm comm,
             MPI_Status* status)
{
    const held_windows windows = borrow_both(sent, received, comm);
    return std::apply(next, std::tuple_cat(arguments_of(sent, to, received, from, comm, windows), std::tuple(status)));
}

template <typename Next, typename Count>
int start_exchange(Next* next, sent_side<Count> sent, partner to, received_side<Count> received, partner from,
                   MPI_Comm comm, MPI_Request* request)
{
    return start_on(borrow_both(sent, received, comm), request, [&](const held_windows& windows) {
        return std::apply(next,
                          std::tuple_cat(arguments_of(sent, to, received, from, comm, windows), std::tuple(request)));
    });
}

// A window for what is received; none also where MPI unpacks it by a layout.
struct replaced_side {
    window_use window;
    bool is_taken;
};

template <typename Count>
replaced_side borrow_replaced(const received_side<Count>& side, MPI_Comm comm)
{
    known_type* const known = find_known(side.type);
    if (known == nullptr) [[likely]] {
        return {{}, false};
    }
    window_use window   = side.borrow(comm, direction::receive);
    const bool is_taken = window || known->is_moved_by_layout();
    return {std::move(window), is_taken};
}

// MPI packs what it sends, with the CPU, to make room for what it receives. So it is packed here.
template <typename Next, typename Exchange, typename Count>
int replace(Next* next, Exchange* by, received_side<Count> side, partner to, partner from, MPI_Comm comm,
            MPI_Status* status)
{
    const replaced_side into = borrow_replaced(side, comm);
    const auto packed =
        into.is_taken ? packed_side::of(side.buffer, side.count, side.type, direction::send) : std::nullopt;
    if (packed) {
        packed->pack();
        return std::apply(by, std::tuple_cat(std::tuple(packed->data(), side.count, packed->type(0)), to.arguments(),
                                             side.arguments(into.window), from.arguments(), std::tuple(comm, status)));
    }
    return next(side.buffer, side.count, side.type, to.rank, to.tag, from.rank, from.tag, comm, status);
}

template <typename Next, typename Exchange, typename Count>
int start_replace(Next* next, Exchange* by, received_side<Count> side, partner to, partner from, MPI_Comm comm,
                  MPI_Request* request)
{
    replaced_side into = borrow_replaced(side, comm);
    auto things =
        into.is_taken ? hold_packed(packed_side::of(side.buffer, side.count, side.type, direction::send)) : nullptr;
    if (things != nullptr) {
        things->begin();
        const int result = std::apply(
            by, std::tuple_cat(std::tuple(things->side().data(), side.count, things->side().type(0)), to.arguments(),
                               side.arguments(into.window), from.arguments(), std::tuple(comm, request)));
        if (result == MPI_SUCCESS) {
            things->windows[0] = std::move(into.window);
            requests::hold(*request, std::move(things));
        }
        return result;
    }
    return next(side.buffer, side.count, side.type, to.rank, to.tag, from.rank, from.tag, comm, request);
}

} // namespace

// `c` ends the names of the calls with large counts.
#define UCXL_EXCHANGES(c, Count)                                                                                       \
    UCXL_MPI_CALL MPI_Sendrecv##c(const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination,  \
                                  int send_tag, void* receive_buffer, Count receive_count, MPI_Datatype receive_type,  \
                                  int source, int receive_tag, MPI_Comm comm, MPI_Status* status)                      \
    {                                                                                                                  \
        return exchange(PMPI_Sendrecv##c, sent_side<Count>{send_buffer, send_count, send_type},                        \
                        {destination, send_tag}, {receive_buffer, receive_count, receive_type}, {source, receive_tag}, \
                        comm, status);                                                                                 \
    }                                                                                                                  \
    UCXL_MPI_CALL MPI_Sendrecv_replace##c(void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, \
                                          int source, int receive_tag, MPI_Comm comm, MPI_Status* status)              \
    {                                                                                                                  \
        return replace(PMPI_Sendrecv_replace##c, PMPI_Sendrecv##c, received_side<Count>{buffer, count, type},          \
                       {destination, send_tag}, {source, receive_tag}, comm, status);                                  \
    }                                                                                                                  \
    UCXL_MPI_CALL MPI_Isendrecv_replace##c(void* buffer, Count count, MPI_Datatype type, int destination,              \
                                           int send_tag, int source, int receive_tag, MPI_Comm comm,                   \
                                           MPI_Request* request)                                                       \
    {                                                                                                                  \
        return start_replace(PMPI_Isendrecv_replace##c, PMPI_Isendrecv##c, received_side<Count>{buffer, count, type},  \
                             {destination, send_tag}, {source, receive_tag}, comm, request);                           \
    }                                                                                                                  \
    UCXL_MPI_CALL MPI_Isendrecv##c(const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination, \
                                   int send_tag, void* receive_buffer, Count receive_count, MPI_Datatype receive_type, \
                                   int source, int receive_tag, MPI_Comm comm, MPI_Request* request)                   \
    {                                                                                                                  \
        return start_exchange(PMPI_Isendrecv##c, sent_side<Count>{send_buffer, send_count, send_type},                 \
                              {destination, send_tag}, {receive_buffer, receive_count, receive_type},                  \
                              {source, receive_tag}, comm, request);                                                   \
    }

UCXL_EXCHANGES(, int)
#if UCXL_LARGE_COUNTS
UCXL_EXCHANGES(_c, MPI_Count)
#endif
