// What running requests hold: windows, and memory for packed bytes. It is given back when MPI says that the request has
// ended, in whichever call that is.
//
// A call that may end requests takes out what they hold before it asks MPI, and puts back what is still needed: once a
// request has ended, MPI may give its handle to the next one of another thread.
#pragma once

#include "known_type.h"
#include "mpi_functions.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace ucxl::mpi
{

using held_windows = std::array<window_use, 2>;

struct held {
    held_windows windows;
    std::unique_ptr<std::byte[]> packed;
};
using held_ptr = std::unique_ptr<held>;

class requests
{
public:
    // Does not throw: without memory for it the windows stay until MPI ends.
    static void hold(MPI_Request request, held_ptr things) noexcept;
    static bool any() { return _number.load(std::memory_order_relaxed) > 0; }
    static held_ptr take(MPI_Request request);
    // A request that nobody will ask about may use its windows until MPI ends.
    static void keep_to_the_end(held_ptr things) noexcept;
    static void forget_all();

private:
    static std::atomic<std::size_t> _number;
};

// The things of some requests, during a call that may end them.
//
//     ending_requests ending(count, array);
//     const int result = PMPI_Waitall(count, array, statuses);
//     ending.settle();
class ending_requests
{
public:
    ending_requests(int count, MPI_Request* array) noexcept
    {
        if (requests::any() && count > 0 && array != nullptr) [[unlikely]] {
            take(count, array);
        }
    }
    // Puts back what requests still need, and releases the rest.
    void settle() noexcept
    {
        if (!_taken.empty()) [[unlikely]] {
            put_back();
        }
    }

private:
    struct taken {
        MPI_Request* place;
        MPI_Request request;
        held_ptr things;
    };
    void take(int count, MPI_Request* array) noexcept;
    void put_back() noexcept;

    std::vector<taken> _taken;
};

} // namespace ucxl::mpi
