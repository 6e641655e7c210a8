// A call that starts a request on windows or packed bytes in the places of its buffers. The request holds them until it
// ends, or, if it is persistent, until it is freed.
#pragma once

#include "call.h"
#include "packed_side.h"
#include "requests.h"
#include "type_uses.h"

#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

namespace ucxl::mpi
{

// The buffer of a message as MPI gets it.
template <typename Buffer, typename Count>
struct message_side {
    Buffer buffer;
    Count count;
    MPI_Datatype type;

    window_use borrow(MPI_Comm comm, direction way) const { return mpi::borrow(buffer, count, type, comm, way); }
    // The window, if there is one.
    auto arguments(const window_use& window) const
    {
        return window ? std::tuple<Buffer, Count, MPI_Datatype>(window.address(), count, window.packed_type())
                      : std::tuple(buffer, count, type);
    }
};

inline void note_persistent(MPI_Datatype type, MPI_Count count)
{
    if (count < std::numeric_limits<int>::max()) {
        find_used(type, starts_of_persistent * count);
    }
}

// `call` gets the windows, which are none if MPI shall work on the caller's buffers, and starts the request.
template <typename Call>
int start_on(held_windows&& windows, bool is_message, MPI_Request* request, Call call)
{
    held_ptr things(windows[0] || windows[1] ? new (std::nothrow) held : nullptr);
    if (things == nullptr) {
        return call(held_windows());
    }
    const int result = call(windows);
    if (result == MPI_SUCCESS) {
        things->windows    = std::move(windows);
        things->is_message = is_message;
        requests::hold(*request, std::move(things));
    }
    return result;
}

// What is sent, packed at each start.
class held_packed final : public held
{
public:
    explicit held_packed(packed_side&& side) : _side(std::move(side)) {}
    void begin() override { _side.pack(); }
    const packed_side& side() const { return _side; }

private:
    packed_side _side;
};

// Null if MPI shall work on the caller's buffer.
inline std::unique_ptr<held_packed> hold_packed(std::optional<packed_side>&& side)
{
    return std::unique_ptr<held_packed>(side ? new (std::nothrow) held_packed(std::move(*side)) : nullptr);
}

} // namespace ucxl::mpi
