// UCX_LAYOUT_MPI_STATIC_ARRAYS=y: the static arrays of the program are shared memory, as its large allocations are with
// the heap. Many programs in Fortran have all their fields there.
//
// That is the memory of the program's own variables that begin as zeros (.bss); libraries keep theirs. It moves into a
// file at the same addresses (ucp_layout_memory_create).
#pragma once

#include <cstddef>

namespace ucxl::mpi
{

class static_arrays
{
public:
    // Once, if they are wanted and there are as many bytes as one message in one pass has. Before MPI starts, when the
    // program may not use them in other threads yet; does nothing as long as there is no UCX.
    static void share() noexcept;
    // Bytes that are shared.
    static std::size_t length() noexcept;
    // Whether all these bytes are.
    static bool has(const void* start, std::size_t length) noexcept;
};

} // namespace ucxl::mpi
