// Which datatypes are worth a window, or a layout: those that MPI moves slower by its own means.
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
    std::size_t length      = 0; // bytes
    std::size_t num_blocks  = 0;
    std::size_t span        = 0;     // of memory, from the first byte to the last one
    std::size_t list_length = 0;     // bytes that describe the layout: many for a list without a pattern
    bool is_mixed           = false; // blocks of several lengths

    double mean_block() const { return static_cast<double>(length) / static_cast<double>(num_blocks); }
    double mean_distance() const { return static_cast<double>(span) / static_cast<double>(num_blocks); }
    // Blocks of several lengths that repeat in loops, as those of records.
    bool is_nested() const { return is_mixed && !is_list(); }
    // Places without a pattern.
    bool is_list() const { return list_length >= 2 * num_blocks; }
};

enum class means : unsigned char {
    window, // a message from or into a window
    layout, // messages of all counts that Open MPI moves by a layout, see ucp_datatypes.h
    copy    // gathered or scattered by this process, between which MPI moves contiguous bytes
};

// Null if it is worth it, otherwise why not.
const char* why_not_worth(const traffic& moved, means by);

} // namespace ucxl::mpi
