// Which datatypes are worth a window: those that MPI moves slower by its own means.
//
// The thresholds were measured with `contrib/dev bench mpi`; docs/mpi.md has the figures. UCX_LAYOUT_MPI_TYPES=all and
// UCX_LAYOUT_MPI_MIN_SIZE overrule them.
#pragma once

#include "type_layout.h"

#include <cstddef>

namespace ucxl::mpi
{

// What a message or a packed buffer of one datatype and count consists of.
struct traffic {
    std::size_t length     = 0; // bytes
    std::size_t num_blocks = 0;
    unsigned depth         = 0;     // loops of the normal form
    bool is_list           = false; // not one block repeated in loops
};

enum class means : unsigned char {
    window, // a message from or into a window
    copy    // gathered or scattered by this process, between which MPI moves contiguous bytes
};

// Null if it is worth it, otherwise why not.
const char* why_not_worth(const traffic& moved, means by);

} // namespace ucxl::mpi
