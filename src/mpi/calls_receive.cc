// Receives: into a window over the caller's buffer, if its datatype is worth one.
#include "start_call.h"

#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <tuple>

namespace
{

using namespace ucxl::mpi;

template <typename Next, typename Count>
[[gnu::noinline]] int receive_taken(Next* next, void* buffer, Count count, MPI_Datatype type, int source, int tag,
                                    MPI_Comm comm, MPI_Status* status)
{
    const message_side side{buffer, count, type};
    const window_use window = source == MPI_PROC_NULL ? window_use() : side.borrow(comm, direction::receive);
    return std::apply(next, std::tuple_cat(side.arguments(window), std::tuple(source, tag, comm, status)));
}

template <typename Next, typename Count>
UCXL_MPI_FAST int receive(Next* next, void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                          MPI_Status* status)
{
    return is_left_to_mpi(type, count) ? next(buffer, count, type, source, tag, comm, status)
                                       : receive_taken(next, buffer, count, type, source, tag, comm, status);
}

template <typename Next, typename Count>
[[gnu::noinline]] int start_receive_taken(Next* next, void* buffer, Count count, MPI_Datatype type, int source, int tag,
                                          MPI_Comm comm, MPI_Request* request)
{
    const message_side side{buffer, count, type};
    if (source == MPI_PROC_NULL) {
        return next(buffer, count, type, source, tag, comm, request);
    }
    const auto call = [&](const held_windows& windows) {
        return std::apply(next, std::tuple_cat(side.arguments(windows[0]), std::tuple(source, tag, comm, request)));
    };
    return start_on({side.borrow(comm, direction::receive)}, true, request, call);
}

// Also the call that makes a persistent request.
template <typename Next, typename Count>
UCXL_MPI_FAST int start_receive(Next* next, void* buffer, Count count, MPI_Datatype type, int source, int tag,
                                MPI_Comm comm, MPI_Request* request)
{
    return is_left_to_mpi(type, count) ? next(buffer, count, type, source, tag, comm, request)
                                       : start_receive_taken(next, buffer, count, type, source, tag, comm, request);
}

// Messages that were matched in communicators that take no windows: a receive of one names no communicator.
struct own_messages {
    std::mutex lock;
    std::set<MPI_Message> all;
    std::atomic<std::size_t> number{0};
};

own_messages& without_windows()
{
    static own_messages& only = *new own_messages;
    return only;
}

void note_message(MPI_Comm comm, MPI_Message message)
{
    if (message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC || can_take_windows(comm)) {
        return;
    }
    try {
        auto& messages = without_windows();
        const std::lock_guard guard(messages.lock);
        messages.all.insert(message);
        messages.number = messages.all.size();
    } catch (const std::bad_alloc&) {
        return; // such a message is received by a program that has no memory left
    }
}

bool takes_window(MPI_Message message)
{
    auto& messages = without_windows();
    if (messages.number.load() == 0) {
        return true;
    }
    const std::lock_guard guard(messages.lock);
    const bool is_own = messages.all.erase(message) > 0;
    messages.number   = messages.all.size();
    return !is_own;
}

template <typename Next, typename Count>
int receive_matched(Next* next, void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status)
{
    known_type* const known = find_taken(type, count);
    if (message == nullptr || *message == MPI_MESSAGE_NO_PROC || !takes_window(*message) || known == nullptr) {
        return next(buffer, count, type, message, status);
    }
    const message_side side{buffer, count, type};
    const window_use window = known->borrow(buffer, count, direction::receive);
    return std::apply(next, std::tuple_cat(side.arguments(window), std::tuple(message, status)));
}

template <typename Next, typename Count>
int start_receive_matched(Next* next, void* buffer, Count count, MPI_Datatype type, MPI_Message* message,
                          MPI_Request* request)
{
    known_type* const known = find_taken(type, count);
    if (message == nullptr || *message == MPI_MESSAGE_NO_PROC || !takes_window(*message) || known == nullptr) {
        return next(buffer, count, type, message, request);
    }
    const message_side side{buffer, count, type};
    const auto call = [&](const held_windows& windows) {
        return std::apply(next, std::tuple_cat(side.arguments(windows[0]), std::tuple(message, request)));
    };
    return start_on({known->borrow(buffer, count, direction::receive)}, true, request, call);
}

} // namespace

UCXL_MPI_CALL own_MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status)
{
    const int result = next_MPI_Mprobe(source, tag, comm, message, status);
    if (result == MPI_SUCCESS) {
        note_message(comm, *message);
    }
    return result;
}

UCXL_MPI_CALL own_MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status)
{
    const int result = next_MPI_Improbe(source, tag, comm, flag, message, status);
    if (result == MPI_SUCCESS && *flag != 0) {
        note_message(comm, *message);
    }
    return result;
}

// `c` ends the names of the calls with large counts.
#define UCXL_RECEIVES(c, Count)                                                                                        \
    UCXL_MPI_CALL own_MPI_Recv##c(void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,    \
                                  MPI_Status* status)                                                                  \
    {                                                                                                                  \
        return receive(next_MPI_Recv##c, buffer, count, type, source, tag, comm, status);                              \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Irecv##c(void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,   \
                                   MPI_Request* request)                                                               \
    {                                                                                                                  \
        return start_receive(next_MPI_Irecv##c, buffer, count, type, source, tag, comm, request);                      \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Recv_init##c(void* buffer, Count count, MPI_Datatype type, int source, int tag,              \
                                       MPI_Comm comm, MPI_Request* request)                                            \
    {                                                                                                                  \
        note_persistent(type, count);                                                                                  \
        return start_receive(next_MPI_Recv_init##c, buffer, count, type, source, tag, comm, request);                  \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Mrecv##c(void* buffer, Count count, MPI_Datatype type, MPI_Message* message,                 \
                                   MPI_Status* status)                                                                 \
    {                                                                                                                  \
        return receive_matched(next_MPI_Mrecv##c, buffer, count, type, message, status);                               \
    }                                                                                                                  \
    UCXL_MPI_CALL own_MPI_Imrecv##c(void* buffer, Count count, MPI_Datatype type, MPI_Message* message,                \
                                    MPI_Request* request)                                                              \
    {                                                                                                                  \
        return start_receive_matched(next_MPI_Imrecv##c, buffer, count, type, message, request);                       \
    }

UCXL_RECEIVES(, int)
#if UCXL_LARGE_COUNTS
UCXL_RECEIVES(_c, MPI_Count)
#endif
