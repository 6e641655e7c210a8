// Long messages between processes of this host whose buffer lies in the shared heap (libucx_layout_heap): they go by a
// window over the buffer, which the other process copies in one pass. Also contiguous ones, which MPI sends in two
// copies or by the kernel, and those that Open MPI moves by layouts otherwise (ucp_datatypes.h).
//
//     if (one_pass::is_on() && one_pass::has(buffer, span)) { ... }
//
// Off, unless the process has the heap and all processes of the job are on its host. Beside layouts, which need nothing
// of the peer, also unless all peers have windows and are known when MPI has started, and as soon as another one comes.
#pragma once

#include "mpi_functions.h"
#include "rule.h"
#include "sys/heap_memory.h"

#include <atomic>
#include <cstddef>
#include <limits>

namespace ucxl::mpi
{

class known_type;

class one_pass
{
public:
    // Below, two copies at the same time are faster (decision 33), and windows are not direct.
    static constexpr std::size_t min_length = 512 << 10;

    // Before MPI starts: Open MPI shall connect all processes at once.
    static void prepare();
    // Whether start() may turn it on if MPI's UCX has windows, which is known before MPI has a context.
    static bool may_start();
    // After MPI has started, and ucp_datatypes.
    static void start();
    // Also when a peer without windows may come, or the memory turns out not to be shared. Returns whether it was on.
    static bool stop();
    static bool is_on() { return _is_on.load(std::memory_order_relaxed); }
    // Whether blocks of collective calls may go so, too (side_window.h).
    static bool takes_collectives() { return is_on() && _takes_collectives.load(std::memory_order_relaxed); }

    // How many processes the job has, if all of them are on this host, as its launcher says; otherwise 0.
    static unsigned long num_processes();
    // Memory is shared among so many at most: each connects to all others, which takes some time of MPI_Init.
    static constexpr unsigned long max_processes = 256;

    // Whether the heap has all these bytes; if so, `piece` is where. Static arrays are in no piece.
    static bool find_in_heap(const void* start, std::size_t length, heap_memory& piece) noexcept;
    // Whether the heap or the static arrays have all these bytes.
    static bool has(const void* start, std::size_t length) noexcept;
    // Whether a message like this is faster so.
    static bool is_worth(const traffic& moved);

    // The least number of elements of a datatype of MPI itself that may be long enough; no number while it is off.
    static MPI_Count min_count() { return _min_count.load(std::memory_order_relaxed); }
    // What is known of a datatype of MPI itself, with which a program sends so many elements. Null: MPI moves them.
    static known_type* find(MPI_Datatype type, MPI_Count count) noexcept;

private:
    static constinit inline std::atomic<bool> _is_on{false}, _takes_collectives{false};
    static constinit inline std::atomic<MPI_Count> _min_count{std::numeric_limits<MPI_Count>::max()};
};

} // namespace ucxl::mpi
