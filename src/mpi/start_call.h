// A call that starts a request on windows in the places of its buffers. The request holds them until it ends, or, if it
// is persistent, until it is freed.
#pragma once

#include "call.h"
#include "requests.h"

#include <new>
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

    bool is_taken() const { return find_known(type) != nullptr; }
    window_use borrow(MPI_Comm comm, direction way) const { return mpi::borrow(buffer, count, type, comm, way); }
    // The window, if there is one.
    auto arguments(const window_use& window) const
    {
        return window ? std::tuple<Buffer, Count, MPI_Datatype>(window.address(), count, window.packed_type())
                      : std::tuple(buffer, count, type);
    }
};

// `call` gets the windows, which are none if MPI shall work on the caller's buffers, and starts the request.
template <typename Call>
int start_on(held_windows&& windows, MPI_Request* request, Call call)
{
    held_ptr things(windows[0] || windows[1] ? new (std::nothrow) held : nullptr);
    if (things == nullptr) {
        return call(held_windows());
    }
    const int result = call(windows);
    if (result == MPI_SUCCESS) {
        things->windows = std::move(windows);
        requests::hold(*request, std::move(things));
    }
    return result;
}

} // namespace ucxl::mpi
