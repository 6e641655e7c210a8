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

struct taken_sides {
    bool sent, received; // not left to MPI

    template <typename Count>
    UCXL_MPI_FAST taken_sides(MPI_Datatype send_type, Count send_count, int destination, MPI_Datatype receive_type,
                              Count receive_count, int source)
    {
        const bool is_sent = destination != MPI_PROC_NULL, is_received = source != MPI_PROC_NULL;
        if (is_sent && is_received && send_type == receive_type && send_count == receive_count) {
            sent = received = !is_left_to_mpi(send_type, send_count, 2); // looked up once
        } else {
            sent     = is_sent && !is_left_to_mpi(send_type, send_count);
            received = is_received && !is_left_to_mpi(receive_type, receive_count);
        }
    }
    bool any() const { return sent || received; }
    template <typename Count>
    held_windows borrow(const sent_side<Count>& from, const received_side<Count>& into, MPI_Comm comm) const
    {
        return {sent ? from.borrow(comm, direction::send) : window_use(),
                received ? into.borrow(comm, direction::receive) : window_use()};
    }
};

template <typename Next, typename Count>
[[gnu::noinline]] int exchange_taken(Next* next, taken_sides taken, sent_side<Count> sent, partner to,
                                     received_side<Count> received, partner from, MPI_Comm comm, MPI_Status* status)
{
    const held_windows windows = taken.borrow(sent, received, comm);
    return std::apply(next, std::tuple_cat(arguments_of(sent, to, received, from, comm, windows), std::tuple(status)));
}

// The datatype for what a request sends while it receives: a copy where MPI ends it.
class lent_type
{
public:
    lent_type(MPI_Datatype type, partner to, partner from)
        : _type(type), _is_copied(to.rank != MPI_PROC_NULL && from.rank != MPI_PROC_NULL &&
                                  isendrecv_ends_datatypes() && PMPI_Type_dup(type, &_type) == MPI_SUCCESS)
    {
    }
    lent_type(const lent_type&)            = delete;
    lent_type& operator=(const lent_type&) = delete;
    ~lent_type()
    {
        if (_is_copied) {
            PMPI_Type_free(&_type);
        }
    }

    MPI_Datatype type() const { return _type; }
    // A request that has started ends it. Returns `result`.
    int give_if_started(int result)
    {
        _is_copied = _is_copied && result != MPI_SUCCESS;
        return result;
    }

private:
    MPI_Datatype _type;
    bool _is_copied;
};

template <typename Next, typename Count>
[[gnu::noinline]] int start_exchange_taken(Next* next, taken_sides taken, sent_side<Count> sent, partner to,
                                           received_side<Count> received, partner from, MPI_Comm comm,
                                           MPI_Request* request)
{
    return start_on(taken.borrow(sent, received, comm), false, request, [&](const held_windows& windows) {
        auto arguments = std::tuple_cat(arguments_of(sent, to, received, from, comm, windows), std::tuple(request));
        if (!windows[0]) {
            return std::apply(next, arguments);
        }
        auto& sent_type = std::get<2>(arguments);
        lent_type lent(sent_type, to, from);
        sent_type = lent.type();
        return lent.give_if_started(std::apply(next, arguments));
    });
}

// A window for what is received; none also where MPI unpacks it by a layout.
struct replaced_side {
    window_use window;
    bool is_taken;
};

template <typename Count>
replaced_side borrow_replaced(const received_side<Count>& side, partner to, partner from, MPI_Comm comm)
{
    const bool is_between_two = to.rank != MPI_PROC_NULL && from.rank != MPI_PROC_NULL;
    known_type* const known   = is_between_two ? find_used(side.type, side.count) : nullptr;
    if (known == nullptr) [[likely]] {
        return {{}, false};
    }
    window_use window   = side.borrow(comm, direction::receive);
    const bool is_taken = window || known->layout_context() != nullptr;
    return {std::move(window), is_taken};
}

// MPI packs what it sends, with the CPU, to make room for what it receives. So it is packed here.
template <typename Next, typename Exchange, typename Count>
int replace(Next* next, Exchange* by, received_side<Count> side, partner to, partner from, MPI_Comm comm,
            MPI_Status* status)
{
    const replaced_side into = borrow_replaced(side, to, from, comm);
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
    replaced_side into = borrow_replaced(side, to, from, comm);
    auto things =
        into.is_taken ? hold_packed(packed_side::of(side.buffer, side.count, side.type, direction::send)) : nullptr;
    if (things != nullptr) {
        things->begin();
        lent_type lent(things->side().type(0), to, from);
        const int result = lent.give_if_started(
            std::apply(by, std::tuple_cat(std::tuple(things->side().data(), side.count, lent.type()), to.arguments(),
                                          side.arguments(into.window), from.arguments(), std::tuple(comm, request))));
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
    UCXL_MPI_CALL own_MPI_Sendrecv##c(const void* send_buffer, Count send_count, MPI_Datatype send_type,               \
                                      int destination, int send_tag, void* receive_buffer, Count receive_count,        \
                                      MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,           \
                                      MPI_Status* status)                                                              \
    {                                                                                                                  \
        const taken_sides taken(send_type, send_count, destination, receive_type, receive_count, source);              \
        if (!taken.any()) [[likely]] {                                                                                 \
            return next_MPI_Sendrecv##c(send_buffer, send_count, send_type, destination, send_tag, receive_buffer,     \
                                        receive_count, receive_type, source, receive_tag, comm, status);               \
        }                                                                                                              \
        return exchange_taken(next_MPI_Sendrecv##c, taken, sent_side<Count>{send_buffer, send_count, send_type},       \
                              {destination, send_tag}, {receive_buffer, receive_count, receive_type},                  \
                              {source, receive_tag}, comm, status);                                                    \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Sendrecv_replace##c(void* buffer, Count count, MPI_Datatype type, int destination,           \
                                              int send_tag, int source, int receive_tag, MPI_Comm comm,                \
                                              MPI_Status* status)                                                      \
    {                                                                                                                  \
        return replace(next_MPI_Sendrecv_replace##c, next_MPI_Sendrecv##c, received_side<Count>{buffer, count, type},  \
                       {destination, send_tag}, {source, receive_tag}, comm, status);                                  \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Isendrecv_replace##c(void* buffer, Count count, MPI_Datatype type, int destination,          \
                                               int send_tag, int source, int receive_tag, MPI_Comm comm,               \
                                               MPI_Request* request)                                                   \
    {                                                                                                                  \
        return start_replace(next_MPI_Isendrecv_replace##c, next_MPI_Isendrecv##c,                                     \
                             received_side<Count>{buffer, count, type}, {destination, send_tag},                       \
                             {source, receive_tag}, comm, request);                                                    \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Isendrecv##c(const void* send_buffer, Count send_count, MPI_Datatype send_type,              \
                                       int destination, int send_tag, void* receive_buffer, Count receive_count,       \
                                       MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,          \
                                       MPI_Request* request)                                                           \
    {                                                                                                                  \
        const taken_sides taken(send_type, send_count, destination, receive_type, receive_count, source);              \
        if (!taken.any()) [[likely]] {                                                                                 \
            return next_MPI_Isendrecv##c(send_buffer, send_count, send_type, destination, send_tag, receive_buffer,    \
                                         receive_count, receive_type, source, receive_tag, comm, request);             \
        }                                                                                                              \
        return start_exchange_taken(next_MPI_Isendrecv##c, taken,                                                      \
                                    sent_side<Count>{send_buffer, send_count, send_type}, {destination, send_tag},     \
                                    {receive_buffer, receive_count, receive_type}, {source, receive_tag}, comm,        \
                                    request);                                                                          \
    }

UCXL_EXCHANGES(, int)
#if UCXL_LARGE_COUNTS
UCXL_EXCHANGES(_c, MPI_Count)
#endif
