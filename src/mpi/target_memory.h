// Memory of the targets of one-sided operations, as far as this process can map it: what programs give to
// MPI_Win_create, if it lies in the shared heap (libucx_layout_heap) of a process of this host, and what MPI itself
// allocates for MPI_Win_allocate. A put or a get copies there at once, in one pass, whatever the datatypes are, where
// MPI starts an operation for each block.
//
//     if (const auto memory = target_memory::find(win, rank)) { ... memory->start + displacement * memory->unit ... }
//
// The processes of a window tell each other where their memory is, so all of them have to take part. Which do, all know
// since MPI has started, and it never changes.
#pragma once

#include "mpi_functions.h"

#include <cstddef>
#include <optional>

namespace ucxl::mpi
{

class target_memory
{
public:
    // After MPI_Init, whatever the library has made of it: all processes of a job do this, or none does. One that has
    // had a session before takes no part.
    static void start(bool is_first) noexcept;
    // Before MPI_COMM_WORLD ends, by whose ranks the processes of new windows are known.
    static void leave_world() noexcept;
    // Before MPI ends.
    static void stop() noexcept;

    // Programs may unmap what they have mapped themselves before the window ends.
    enum class made_by : unsigned char { program, mpi };
    // All processes of the communicator have made this MPI window. A call of all of them, as those of MPI are.
    static void add(MPI_Win win, const void* base, MPI_Aint length, MPI_Aint unit, MPI_Comm comm,
                    made_by memory) noexcept;
    // Where this process sees the memory of a target, mapped at the first use. None if MPI does the operation.
    struct seen {
        std::byte* start;
        MPI_Aint length; // bytes
        MPI_Aint unit;   // of displacements

        // Where an operation begins with this displacement; null if that is no address.
        std::byte* at(MPI_Aint displacement) const;
        // Whether [first, end) is within it. Any addresses may be asked for.
        bool has(const std::byte* first, const std::byte* end) const;
    };
    static std::optional<seen> find(MPI_Win win, int rank) noexcept;
};

} // namespace ucxl::mpi
